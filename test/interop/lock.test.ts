import { lockSuite } from "./lockSuite.ts"

lockSuite("RLock")
