/**
 * One look at the locks for all pages that are open: what is held, and for each page what has changed since it was told.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import type { InvalidLockOptions, LockChange, LockStoreError, RedisLock } from "effect-redis-lock"
import { changesOf, type Looking } from "../../watch/changes.ts"
import { after, type HeldLock } from "../../watch/heldLock.ts"
import { ClientLabels } from "./ClientLabels.ts"
import { HoldHistory } from "./HoldHistory.ts"
import { lockLine } from "./lockLine.ts"
import type { LocksChanged, Trouble } from "../page/connection/wire.ts"

/** All changes of this time go to a page at once, so that it draws once. */
const gathered = "40 millis"

/** What one page does not know yet: at most all names, however slowly it reads. */
interface Page {
  isWhole: boolean
  readonly names: Set<string>
  trouble: boolean
  readonly news: Latch.Latch
}

export interface News {
  readonly locks: LocksChanged | undefined
  readonly trouble: Trouble | undefined
}

export class LockFeed {
  readonly labels = new ClientLabels()
  readonly history = new HoldHistory(this.labels)
  readonly #held = new Map<string, HeldLock>()
  readonly #pages = new Set<Page>()
  #trouble: string | null = null

  /** Looks at the locks, without end: the pages of single names are of use also where Redis refuses to list them. */
  look(looking: Looking): Effect.Effect<void, LockStoreError | InvalidLockOptions, RedisLock.RedisLock> {
    return changesOf(looking, "waits", (failure) => Effect.sync(() => this.#tell(failure))).pipe(
      Stream.runForEach((change) => Effect.map(Clock.currentTimeMillis, (now) => this.#change(change, now)))
    )
  }

  /** What has been seen of a name, while it is held. */
  heldLock(name: string): HeldLock | undefined {
    return this.#held.get(name)
  }

  /** What a page is told: first all locks, then what has changed, each time as soon as it has read what came before. */
  readonly news: Stream.Stream<News> = Stream.unwrap(
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => this.#open()),
        (page) => Effect.sync(() => this.#pages.delete(page))
      ),
      (page) =>
        Stream.fromEffectRepeat(
          page.news.await.pipe(
            Effect.andThen(Effect.sleep(gathered)),
            Effect.andThen(Clock.currentTimeMillis),
            Effect.map((now) => this.#newsFor(page, now))
          )
        )
    )
  )

  #open(): Page {
    const names = new Set(this.#held.keys())
    const page: Page = { isWhole: true, names, trouble: this.#trouble !== null, news: Latch.makeUnsafe(true) }
    this.#pages.add(page)
    return page
  }

  #newsFor(page: Page, now: number): News {
    page.news.closeUnsafe()
    const all = Array.from(page.names, (name) => [name, this.#held.get(name)] as const)
    const locks = {
      now,
      isWhole: page.isWhole,
      held: all.flatMap(([, lock]) => (lock === undefined ? [] : [lockLine(lock)])),
      free: all.flatMap(([name, lock]) => (lock === undefined ? [name] : []))
    }
    const trouble = page.trouble ? { message: this.#trouble } : undefined
    const isNews = page.isWhole || all.length > 0
    page.names.clear()
    page.isWhole = false
    page.trouble = false
    return { locks: isNews ? locks : undefined, trouble }
  }

  #change({ _tag, state }: LockChange, now: number): void {
    const change = { _tag, state: this.labels.labelled(state) }
    const { name } = state
    this.history.change(change, now)
    const lock = after(this.#held.get(name), change, now)
    if (lock === undefined) this.#held.delete(name)
    else this.#held.set(name, lock)
    for (const { names, news } of this.#pages) {
      names.add(name)
      news.openUnsafe()
    }
  }

  #tell(failure: LockStoreError | undefined): void {
    this.#trouble = failure?.message ?? null
    for (const page of this.#pages) {
      page.trouble = true
      page.news.openUnsafe()
    }
  }
}
