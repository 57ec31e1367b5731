import { lockSuite } from "./lockSuite.ts"

lockSuite("write lock")
