import { lockSuite } from "./lockSuite.ts"

for (const kind of ["RLock", "RFairLock", "write lock"] as const) lockSuite(kind, "cluster")
