import { lockSuite } from "./lockSuite.ts"

lockSuite("RFencedLock")
