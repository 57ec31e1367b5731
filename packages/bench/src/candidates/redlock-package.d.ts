/** The package declares its types where `exports` hides them. */
declare module "redlock" {
  import type { Redis } from "ioredis"

  export interface Lock {
    readonly release: () => Promise<unknown>
  }

  export class ExecutionError extends Error {}

  export default class Redlock {
    constructor(clients: Iterable<Redis>)
    acquire(resources: Array<string>, duration: number): Promise<Lock>
    using<A>(resources: Array<string>, duration: number, routine: (signal: AbortSignal) => Promise<A>): Promise<A>
  }
}
