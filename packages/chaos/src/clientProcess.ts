/**
 * What all client processes of a run have in common, whatever their library: they enter sections until they are told to finish, and tell the
 * parent over IPC what they do and believe.
 */
import { type ClientEvent, type ClientSettings, isAlone, type Kind, now, type Order, STALL_MILLIS } from "./events.ts"
import { openRegister } from "./register.ts"

const TICK_MILLIS = 50

export interface Inside {
  readonly fiber: string
  readonly kind: Kind
  readonly asked: number
  readonly owner: string
  readonly token?: string
}

export class ClientProcess {
  readonly settings = JSON.parse(process.argv[2]!) as ClientSettings
  readonly #register = this.settings.register && openRegister(this.settings.register)
  readonly #ticks: NodeJS.Timeout
  #sections = 0
  #writes = 0
  isFinishing = false

  constructor() {
    process.on("message", (order: Order) => {
      if (order.order === "finish") this.isFinishing = true
      else for (const until = now() + order.millis; now() < until;);
    })
    // the judge is gone
    process.on("disconnect", () => process.exit(1))
    let ticked = now()
    let used = process.cpuUsage()
    this.#ticks = setInterval(() => {
      const at = now()
      const { system, user } = process.cpuUsage(used)
      if (at - ticked > STALL_MILLIS) this.tell({ event: "stalled", at, since: ticked, ran: (system + user) / 1000 })
      ticked = at
      used = process.cpuUsage()
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

  /** Reads the set that its lock guards; the effect adds an element to what it has read. Where several hold the lock there is none. */
  async read({ fiber, kind, owner, token }: Inside): Promise<() => Promise<void>> {
    const register = this.#register
    if (register === undefined || !isAlone(kind)) return async () => {}
    const fence = this.settings.fenced ? token : undefined
    const elements = await register.read(kind, fence)
    return async () => {
      const element = `${process.pid}-${++this.#writes}`
      const version = elements?.length
      this.tell({ event: "writes", at: now(), fiber, kind, owner, token, element, version })
      const isTaken = elements !== undefined && (await register.write(kind, [...elements, element], fence))
      this.tell({ event: "wrote", at: now(), element, isRefused: !isTaken })
    }
  }

  /** Says how it ended, and ends the process. */
  close(why?: string): void {
    clearInterval(this.#ticks)
    this.#register?.close()
    this.tell(why === undefined ? { event: "closed", at: now() } : { event: "broke", at: now(), why })
    process.removeAllListeners("disconnect")
    process.disconnect()
  }
}
