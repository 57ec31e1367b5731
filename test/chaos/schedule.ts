/**
 * The faults of a chaos run: which, when, how long, all decided by a seed.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { between, type Random } from "../simulation/network.ts"

/** Milliseconds everywhere; `client` is the number of a client process. */
export type Fault =
  /**
   * What the client sends is held back for a while; then its connections break, and what was held back reaches the server
   * only later, over the old connections.
   */
  | { readonly fault: "late"; readonly client: number; readonly holds: number; readonly late: number }
  /** The client's connections break, and it may connect again at once. */
  | { readonly fault: "cut"; readonly client: number }
  /** Nothing passes between the client and the server, in either direction; then everything does. */
  | { readonly fault: "silence"; readonly client: number; readonly lasts: number }
  /** SIGKILL; another process takes its place after a while. */
  | { readonly fault: "kill"; readonly client: number; readonly back: number }
  /** SIGSTOP and SIGCONT; where it says so, as soon as the client is inside a section. */
  | { readonly fault: "stop"; readonly client: number; readonly lasts: number; readonly inside?: boolean }
  /** SIGKILL of the server, which comes back with its data. */
  | { readonly fault: "restart"; readonly down: number }
  /** DEBUG SLEEP: the server serves nobody. */
  | { readonly fault: "sleep"; readonly lasts: number }
  /** SIGSTOP and SIGCONT of the server. */
  | { readonly fault: "pause"; readonly lasts: number }

export type Scheduled = Fault & {
  /** Since the beginning of the run. */
  readonly at: number
}

export interface ScheduleOptions {
  readonly seed: number
  /** How long faults begin for. */
  readonly millis: number
  readonly clients: number
  /** Those that may be killed and stopped: their leases are short. */
  readonly mortal: ReadonlyArray<number>
}

/** Before the first fault everybody has had a turn. */
const QUIET_MILLIS = 1500

/** Small ones more often than large ones. */
const logarithmic = (random: Random, least: number, most: number) =>
  Math.round(least * Math.exp(random() * Math.log(most / least)))

export const scheduleOf = ({ clients, millis, mortal, seed }: ScheduleOptions): ReadonlyArray<Scheduled> => {
  const random = randomOf(seed)
  const any = () => between(random, 0, clients - 1)
  const one = () => mortal[between(random, 0, mortal.length - 1)]!
  const makers: ReadonlyArray<readonly [weight: number, make: () => Fault]> = [
    [
      6,
      () => ({
        fault: "late",
        client: any(),
        holds: logarithmic(random, 20, 2500),
        late: logarithmic(random, 100, 60_000)
      })
    ],
    [2, () => ({ fault: "cut", client: any() })],
    [2, () => ({ fault: "silence", client: any(), lasts: logarithmic(random, 200, 6000) })],
    [2, () => ({ fault: "kill", client: one(), back: logarithmic(random, 100, 2000) })],
    [3, () => ({ fault: "stop", client: one(), lasts: logarithmic(random, 200, 8000) })],
    [2, () => ({ fault: "restart", down: logarithmic(random, 100, 4000) })],
    [1, () => ({ fault: "sleep", lasts: logarithmic(random, 200, 5000) })],
    [1, () => ({ fault: "pause", lasts: logarithmic(random, 200, 6000) })]
  ]
  const weights = makers.reduce((sum, [weight]) => sum + weight, 0)
  const faults: Array<Scheduled> = []
  for (let at = QUIET_MILLIS; at < millis; at += logarithmic(random, 150, 2500)) {
    let pick = random() * weights
    const [, make] = makers.find(([weight]) => (pick -= weight) < 0) ?? makers[0]!
    faults.push({ at, ...make() })
  }
  return faults
}

/** One line for people. */
export const describeFault = (fault: Fault): string => {
  switch (fault.fault) {
    case "late":
      return `client ${fault.client}: what it sends is held back for ${fault.holds} ms, its connections break, and the bytes arrive ${fault.late} ms later`
    case "cut":
      return `client ${fault.client}: its connections break`
    case "silence":
      return `client ${fault.client}: silence between it and the server for ${fault.lasts} ms`
    case "kill":
      return `client ${fault.client}: SIGKILL; another takes its place after ${fault.back} ms`
    case "stop":
      return `client ${fault.client}: SIGSTOP for ${fault.lasts} ms`
    case "restart":
      return `server: SIGKILL, and restarted with its data after ${fault.down} ms`
    case "sleep":
      return `server: DEBUG SLEEP for ${fault.lasts} ms`
    case "pause":
      return `server: SIGSTOP for ${fault.lasts} ms`
  }
}
