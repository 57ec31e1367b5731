import { LockStore } from "effect-redis-lock"
import { contract } from "./suite.ts"
import { kinds } from "./suite/kinds.ts"

for (const kind of kinds) contract({ name: "memory", store: LockStore.layerMemory, time: "virtual" }, kind)
