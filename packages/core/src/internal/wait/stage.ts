/**
 * The next step of whoever asks the store: a line asks for all fibers of this process that wait for the same thing, and each waiter of a fair
 * lock asks for itself. Pure and complete: every stage handles every event. `Line.ts` and `FairQueue.ts` feed it with events and carry out what it says;
 * `untilServed.ts` is the loop of a waiter.
 *
 * ```
 *               Due                Asking                    Asleep                HandedOver
 * Changed       -                  noted                     Due, unless quiet     -
 * Kept          -                  noted                     Due                   -
 *   + a grant   HandedOver         noted                     HandedOver            HandedOver, with this one
 * LeftToUs      Due                noted                     Due                   Due
 * LeftToOthers  Asleep, quiet      noted                     Asleep, quiet         -
 *   after LeftToUs  -
 * Asked         Asking             Asking                    Asking                Asking
 * Answered      -                  by what was noted:        -                     -
 *                                    a grant: HandedOver
 *                                    to others: Asleep, quiet
 *                                    a change: Due
 *                                  else Asleep
 * Granted       -                  Asleep                    Asleep                Asleep
 *   to readers  -                  Due after a change        Asleep                Due
 * TakenBack     -                  Asleep                    -                     -
 * Paused        -                  -                         Asleep, unless quiet  -
 * Rang          -                  -                         Due, if it is time    -
 * ```
 */
import type { Streak } from "../hold/Lease.ts"

/** What the message of a release grants: see `lua/include/hand_over/tell_owner.lua`. */
export interface Grant {
  readonly owner: string
  readonly token: number
  /** When the server granted it, by its clock, in microseconds. */
  readonly serverMicros: number
  readonly leaseMillis: number
}

/** It is time to ask. */
export interface Due {
  readonly _tag: "Due"
  /** The sections in a row that lead to the grant, if a release of this process has left the lock to the line. */
  readonly streak: Streak | undefined
}

/** A request is in flight. */
export interface Asking {
  readonly _tag: "Asking"
  readonly streak: Streak | undefined
  /** Whether anything has changed since it was sent: a denial says nothing then. */
  readonly hasChanged: boolean
  /** Until when the lock is left to other processes, on the monotonic clock. */
  readonly quietUntil: number
  /** What was handed over meanwhile: a request that the server has seen before that is denied. */
  readonly grant: Grant | undefined
}

/** A release has handed the lock over to the place of this client: the waiter that has the turn takes it, or asks. */
export interface HandedOver {
  readonly _tag: "HandedOver"
  readonly grant: Grant
}

/** It sleeps until something changes, at most until that time. */
export interface Asleep {
  readonly _tag: "Asleep"
  readonly until: number
  /** Whether it leaves the lock to other processes: then only a lock that is kept for this client is a change. */
  readonly isQuiet: boolean
}

export type Stage = Due | Asking | Asleep | HandedOver

/** Whether there is something to do: to ask, or to take what was handed over. */
export const isDue = ({ _tag }: Stage): boolean => _tag === "Due" || _tag === "HandedOver"

export type Event =
  /** What it waits for may be free. */
  | { readonly _tag: "Changed" }
  /** It is kept for this client, which may begin with the grant, if there is one. */
  | { readonly _tag: "Kept"; readonly grant: Grant | undefined }
  /** A release of this process has left it to this line. */
  | { readonly _tag: "LeftToUs"; readonly streak: Streak }
  /** It is the turn of other processes until then. */
  | { readonly _tag: "LeftToOthers"; readonly until: number }
  /** The request is sent. */
  | { readonly _tag: "Asked" }
  /** The request was denied or has failed: without a change, the next one follows at that time. */
  | { readonly _tag: "Answered"; readonly until: number; readonly now: number }
  /** The request was granted. If that excludes the other waiters, it is of no use to them that something has changed before. */
  | { readonly _tag: "Granted"; readonly until: number; readonly excludes: boolean }
  /** The request is taken back, as its fiber is interrupted or it failed for good. */
  | { readonly _tag: "TakenBack"; readonly until: number }
  /** It sleeps until then, unless something changes. */
  | { readonly _tag: "Paused"; readonly until: number }
  /** The time has come. */
  | { readonly _tag: "Rang"; readonly now: number }

export const due: Due = { _tag: "Due", streak: undefined }

export const asleep = (until: number, isQuiet = false): Asleep => ({ _tag: "Asleep", until, isQuiet })

export const asking: Asking = {
  _tag: "Asking",
  streak: undefined,
  hasChanged: false,
  quietUntil: 0,
  grant: undefined
}

/** The stage that follows. */
export const next = (stage: Stage, event: Event): Stage => {
  switch (event._tag) {
    case "Changed":
      if (stage._tag === "Asking") return stage.hasChanged ? stage : { ...stage, hasChanged: true }
      return stage._tag === "Asleep" && !stage.isQuiet ? due : stage
    case "Kept": {
      const { grant } = event
      if (stage._tag === "Asking") return { ...stage, hasChanged: true, quietUntil: 0, grant }
      if (grant !== undefined) return { _tag: "HandedOver", grant }
      return stage._tag === "Asleep" ? due : stage
    }
    case "LeftToUs":
      return stage._tag === "Asking"
        ? { ...stage, hasChanged: true, quietUntil: 0, streak: event.streak }
        : { _tag: "Due", streak: event.streak }
    case "LeftToOthers":
      // a turn that has been announced may last longer
      if (stage._tag === "Asking") return { ...stage, quietUntil: Math.max(stage.quietUntil, event.until) }
      // it is ours already
      if (stage._tag === "HandedOver" || (stage._tag === "Due" && stage.streak !== undefined)) return stage
      return asleep(stage._tag === "Asleep" && stage.isQuiet ? Math.max(stage.until, event.until) : event.until, true)
    case "Asked":
      return stage._tag === "Due" && stage.streak !== undefined ? { ...asking, streak: stage.streak } : asking
    case "Answered": {
      if (stage._tag !== "Asking") return stage
      if (stage.grant !== undefined) return { _tag: "HandedOver", grant: stage.grant }
      if (stage.quietUntil > event.now) return asleep(stage.quietUntil, true)
      return stage.hasChanged ? due : asleep(event.until)
    }
    case "Granted":
      if (stage._tag === "Due") return stage
      // what they wait for may be free for them, too
      if (!event.excludes && (stage._tag === "HandedOver" || (stage._tag === "Asking" && stage.hasChanged))) return due
      return asleep(event.until)
    case "TakenBack":
      return stage._tag === "Asking" ? asleep(event.until) : stage
    case "Paused":
      return stage._tag === "Asleep" && !stage.isQuiet ? asleep(event.until) : stage
    case "Rang":
      return stage._tag === "Asleep" && stage.until <= event.now ? due : stage
  }
}
