/**
 * What all client processes of a run have in common, whatever their library: they enter sections until they are told to finish, and tell the
 * parent over IPC what they do and believe.
 */
import { Redis } from "ioredis"
import { type ClientEvent, type ClientSettings, type Kind, now, type Order } from "./events.ts"

const TICK_MILLIS = 50
const STALL_MILLIS = 250

/** A read of the register counts as well: what was granted later has been seen. */
const writeLua = `
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or 0) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1`

export interface Inside {
  readonly fiber: string
  readonly kind: Kind
  readonly asked: number
  readonly owner: string
  readonly token?: string
}

export class ClientProcess {
  readonly settings = JSON.parse(process.argv[2]!) as ClientSettings
  readonly #resource = new Redis(this.settings.resource)
  readonly #ticks: NodeJS.Timeout
  #sections = 0
  isFinishing = false

  constructor() {
    process.on("message", (order: Order) => {
      if (order.order === "finish") this.isFinishing = true
      else for (const until = now() + order.millis; now() < until;);
    })
    // the judge is gone
    process.on("disconnect", () => process.exit(1))
    let ticked = now()
    this.#ticks = setInterval(() => {
      const at = now()
      if (at - ticked > STALL_MILLIS) this.tell({ event: "stalled", at, since: ticked })
      ticked = at
    }, TICK_MILLIS)
  }

  tell(event: ClientEvent): void {
    process.send!(event)
  }

  /** The fibers' names, and the kinds of their locks. */
  get fibers(): ReadonlyArray<readonly [Kind, string]> {
    const { fibers, kinds } = this.settings
    return kinds.flatMap((kind) => Array.from({ length: fibers }, (_, i) => [kind, `${kind}-${i}`] as const))
  }

  /** How long the next section takes: every sixteenth is long. */
  nextWork(): number {
    return ++this.#sections % 16 === 0 && !this.isFinishing ? this.settings.longWork : this.settings.work
  }

  /** Writes into the register that refuses old tokens; without a token there is nothing to refuse. */
  async write({ fiber, kind, owner, token }: Inside): Promise<void> {
    if (token === undefined) return
    const call = now()
    const taken = await this.#resource.eval(writeLua, 1, `register:${kind}`, token)
    this.tell({ event: "wrote", at: now(), call, fiber, kind, owner, token, isRefused: taken === 0 })
  }

  /** Says how it ended, and ends the process. */
  close(why?: string): void {
    clearInterval(this.#ticks)
    this.#resource.disconnect()
    this.tell(why === undefined ? { event: "closed", at: now() } : { event: "broke", at: now(), why })
    process.removeAllListeners("disconnect")
    process.disconnect()
  }
}
