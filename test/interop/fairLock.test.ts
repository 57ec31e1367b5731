import { lockSuite } from "./lockSuite.ts"

lockSuite("RFairLock")
