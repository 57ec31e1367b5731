/**
 * What happened in a world: kept as values, and formatted only when a failure is printed.
 */
import type { History as HistoryFile } from "@effect-redis-lock/playground/History"
import { Exit } from "effect"
import type { Request, Server } from "./network.ts"
import type { Result } from "./memory.ts"
import type { VirtualTime } from "./virtualTime.ts"

interface Entry {
  readonly at: number
  readonly event: string | { readonly server: Server; readonly request: Request; readonly result: Result }
}

interface Hold {
  readonly what: string
  readonly from: number
  to?: number
}

export class History {
  readonly #time: VirtualTime
  readonly #entries: Array<Entry> = []
  /** By worker. */
  readonly #holds = new Map<string, Array<Hold>>()

  constructor(time: VirtualTime) {
    this.#time = time
  }

  note(event: string): void {
    this.#entries.push({ at: this.#time.now, event })
  }

  /** A worker begins to hold something; one that enters again holds it twice. */
  begin(worker: string, what: string): void {
    const holds = this.#holds.get(worker) ?? []
    this.#holds.set(worker, holds)
    holds.push({ what, from: this.#time.now - this.#time.start })
  }

  end(worker: string, what: string): void {
    const last = this.#holds.get(worker)!.findLast((hold) => hold.what === what && hold.to === undefined)
    last!.to = this.#time.now - this.#time.start
  }

  executed(server: Server, request: Request, result: Result): void {
    this.#entries.push({ at: this.#time.now, event: { server, request, result } })
  }

  /** The last events, one a line, with milliseconds since the beginning. UUIDs are cut short. */
  last(count: number): string {
    return this.#entries
      .slice(-count)
      .map(({ at, event }) => `${(at - this.#time.start).toFixed(0).padStart(7)} ${this.#words(at, event)}`)
      .join("\n")
      .replaceAll(/([0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "$1")
  }

  /** All of it up to now, as the playground opens it. */
  file(problem: string): Omit<HistoryFile, "title"> {
    const { now, start } = this.#time
    return {
      problem,
      end: now - start,
      lanes: [...this.#holds]
        .map(([name, holds]) => ({ name, holds: holds.map((hold) => ({ ...hold })) }))
        .sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true })),
      events: this.#entries.flatMap(({ at, event }) =>
        typeof event === "string" ? [{ at: at - start, text: event }] : []
      )
    }
  }

  #words(at: number, event: Entry["event"]): string {
    if (typeof event === "string") return event
    const { request, result, server } = event
    const reply = Exit.isSuccess(result) ? JSON.stringify(result.value) : `fails: ${String(result.cause)}`
    const age = at - request.sentAt
    const givenUp =
      request.givenUpAt === undefined || request.givenUpAt > at
        ? ""
        : `, given up ${Math.round(at - request.givenUpAt)} ms ago`
    const late = age > 100 || givenUp !== "" ? ` (sent ${Math.round(age)} ms ago${givenUp})` : ""
    const args = request.args.map((arg) => (arg === "" ? "''" : arg)).join(" ")
    return `server ${server.number} from client ${request.client}${late}: ${request.operation} ${request.keys[0]} ${args} -> ${reply}`
  }
}
