import { lockSuite } from "./lockSuite.ts"

lockSuite("RSpinLock")
