import { LockStore } from "effect-redis-lock"
import { contract } from "./suite.ts"

contract({ name: "memory", store: LockStore.layerMemory, time: "virtual" })
