import { lockSuite } from "./lockSuite.ts"

lockSuite("non-reentrant RLock")
lockSuite("non-reentrant RFairLock")
