import type { Alarm, AlarmClock } from "../../time/AlarmClock.ts"
import type { Subscription, Subscriptions } from "../Subscriptions.ts"

interface SpareClient {
  readonly alarms: AlarmClock
  readonly subscriptions: Subscriptions
  readonly now: () => number
  readonly options: { readonly subscriptionIdleMillis: number }
}

/** An owner id that nobody has used yet, and whose channel is heard. */
export interface SpareOwner {
  readonly owner: string
  /** The number of messages that had arrived when it was taken. */
  readonly messagesSeen: number
  /** Ends its share of the subscription. */
  readonly stop: () => void
}

class Spare implements Alarm {
  readonly owner: string
  readonly channel: string
  readonly subscription: Subscription
  readonly #end: () => void
  due = 0
  heapIndex = -1

  constructor(owner: string, channel: string, subscription: Subscription, end: () => void) {
    this.owner = owner
    this.channel = channel
    this.subscription = subscription
    this.#end = end
  }

  /** Nobody has needed it for `subscriptionIdleTime`. */
  ring(): void {
    this.#end()
  }
}

/**
 * Owner ids for the next waiters of fair locks, one for each lock that somebody has waited for lately. Each waiter has a channel of its
 * own. One that subscribes when its request was denied has to ask once more, as its turn may have been announced before; with an owner
 * whose channel is heard already it need not.
 */
export class SpareOwners {
  readonly #client: SpareClient
  readonly #spares = new Map<string, Spare>()

  constructor(client: SpareClient) {
    this.#client = client
  }

  /** Makes one for the next waiter, if there is none. */
  prepare(lock: string, nextOwner: () => string, channelOf: (owner: string) => string): void {
    const { alarms, now, options, subscriptions } = this.#client
    let spare = this.#spares.get(lock)
    if (spare === undefined) {
      const owner = nextOwner()
      const channel = channelOf(owner)
      const subscription = subscriptions.subscribe(channel, () => {})
      spare = new Spare(owner, channel, subscription, () => {
        this.#spares.delete(lock)
        subscription.stop()
      })
      this.#spares.set(lock, spare)
    }
    alarms.set(spare, now() + options.subscriptionIdleMillis)
  }

  /** Undefined if there is none, or the server has not confirmed its subscription. */
  take(lock: string): SpareOwner | undefined {
    const spare = this.#spares.get(lock)
    if (spare === undefined) return undefined
    const { channel, owner, subscription } = spare
    const messagesSeen = this.#client.subscriptions.messagesSeen(channel)
    if (messagesSeen === undefined) return undefined
    this.#spares.delete(lock)
    this.#client.alarms.cancel(spare)
    return { owner, messagesSeen, stop: () => subscription.stop() }
  }
}
