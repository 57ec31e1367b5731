/**
 * Workers that are fibers of this process, on one memory store.
 */
import { Cause, Context, Effect, Exit, type FileSystem, Layer, Queue, Scope, Stream } from "effect"
import { LockStore, RedisLock } from "effect-redis-lock"
import { Ledger } from "./Ledger.ts"
import { type WorkerEvent, WorkerFailed, Workers } from "./Workers.ts"
import { work } from "./work.ts"

export const layer: Layer.Layer<Workers, never, FileSystem.FileSystem> = Layer.effect(
  Workers,
  Effect.gen(function* () {
    const context = yield* Effect.context<FileSystem.FileSystem | LockStore.LockStore>()

    return Workers.of({
      kind: "fibers",

      start: Effect.fnUntraced(function* (job, go) {
        const failed = (cause: unknown) => WorkerFailed.of(job.worker, cause)
        const events = yield* Queue.unbounded<WorkerEvent, WorkerFailed | Cause.Done>()
        const report = (event: WorkerEvent) => Effect.asVoid(Queue.offer(events, event))

        // Each worker has its own client and scope, over a store from which it can be cut off: then nobody renews or
        // releases the lock that the fiber holds, as after the SIGKILL of a process.
        const scope = yield* Scope.fork(yield* Effect.scope)
        let isCut = false
        const store = Context.get(context, LockStore.LockStore)
        const mortal: LockStore.LockStore["Service"] = {
          ...store,
          run: (command) =>
            Effect.suspend(() => (isCut ? Effect.succeed(command.operation.reply(1)) : store.run(command)))
        }
        const client = Layer.provide(
          RedisLock.layerFromStore({ watchdogLeaseTime: job.leaseMillis }),
          Layer.succeed(LockStore.LockStore, mortal)
        )
        const services = yield* Layer.merge(Ledger.layer(job.ledger), client).pipe(
          Layer.buildWithScope(scope),
          Effect.provideContext(context),
          Effect.mapError(failed)
        )

        yield* report({ _tag: "Ready" })
        yield* go.pipe(
          Effect.andThen(work(job, report)),
          Effect.provideContext(services),
          Effect.matchCauseEffect({
            onSuccess: () => Queue.end(events),
            onFailure: (cause) => Queue.fail(events, failed(Cause.squash(cause)))
          }),
          Effect.forkScoped
        )

        return {
          events: Stream.fromQueue(events),
          kill: Effect.suspend(() => {
            isCut = true
            return Effect.andThen(Queue.end(events), Scope.close(scope, Exit.void))
          })
        }
      })
    })
  })
).pipe(Layer.provide(LockStore.layerMemory))
