import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mayHaveDocker } from "./docker.ts"
import { withRealClock } from "./realClock.ts"

const REDIS_PORT = 6379
const ENGINE_TIMEOUT_MILLIS = 10_000
const REMOVAL_TIMEOUT_MILLIS = 10_000
const LABEL = "effect-redis-lock.testing"
const STALE_SECONDS = 60

/**
 * Standard input is the container's lifeline, as it is for a local server: the engine closes it when our connection to
 * it breaks, the shell ends, and the engine removes the container. This needs no Ryuk.
 */
const script = `
server=$(command -v redis-server || command -v valkey-server || command -v keydb-server) || exit 127
"$server" --save "" --appendonly no --protected-mode no </dev/null &
cat >/dev/null
kill -KILL $!
`

const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).trim().split("\n")[0] ?? ""

/** Installed only by users who want a container, as it brings some 200 packages. */
const loadTestcontainers = Effect.tryPromise({
  try: () => import("testcontainers"),
  catch: (error) =>
    error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND"
      ? "Testcontainers is not installed: npm install --save-dev testcontainers, or have a redis-server on the PATH, which serves as well"
      : `Testcontainers cannot be loaded: ${firstLine(error)}`
})

const step = <A>(run: () => PromiseLike<A>): Effect.Effect<A, string> =>
  Effect.tryPromise({ try: run, catch: firstLine })

/** A container that was started; its server need not answer yet. */
export interface RedisContainer {
  readonly url: string
  /** Fails with the reason when the container has ended. */
  readonly ended: Effect.Effect<never, string>
}

/** Runs `image` with Testcontainers; fails with the reason in a few words. */
export const startRedisContainer: (image: string) => Effect.Effect<RedisContainer, string, Scope.Scope> =
  Effect.fnUntraced(function* (image: string) {
    if (!(yield* mayHaveDocker)) return yield* Effect.fail("no Docker engine answers")
    const { GenericContainer, getContainerRuntimeClient, ImageName, Wait } = yield* loadTestcontainers
    const client = yield* step(getContainerRuntimeClient).pipe(
      Effect.timeoutOrElse({
        duration: ENGINE_TIMEOUT_MILLIS,
        orElse: () => Effect.fail(`the Docker engine did not answer within ${ENGINE_TIMEOUT_MILLIS} ms`)
      }),
      Effect.mapError((reason) => `Testcontainers found no usable Docker engine: ${reason}`)
    )
    // a step of its own, because it may take minutes and unlike the start it can be interrupted without leaving anything
    yield* step(() => client.image.pull(ImageName.fromString(image))).pipe(
      Effect.mapError((reason) => `the image ${image} cannot be pulled: ${reason}`)
    )

    const { dockerode } = client.container
    // a process that dies between "create" and "start" leaves a container that has never run: the next one tidies up
    yield* step(async () => {
      const created = await dockerode.listContainers({ all: true, filters: { label: [LABEL], status: ["created"] } })
      const stale = created.filter((container) => container.Created < Date.now() / 1000 - STALE_SECONDS)
      await Promise.allSettled(stale.map(({ Id }) => dockerode.getContainer(Id).remove({ v: true })))
    }).pipe(Effect.ignore)

    class LeashedContainer extends GenericContainer {
      id: string | undefined
      lifeline: NodeJS.ReadWriteStream | undefined

      constructor() {
        super(image)
        Object.assign(this.createOpts, { OpenStdin: true, StdinOnce: true })
        this.hostConfig.AutoRemove = true
        this.withEntrypoint(["sh", "-c", script]).withCommand([]).withExposedPorts(REDIS_PORT)
        this.withLabels({ [LABEL]: "true" })
        // it is ready when it answers PING, which the caller checks
        this.withWaitStrategy(Wait.forAll([]))
      }

      protected override async containerCreated(id: string) {
        this.id = id
        const options = { stream: true, stdin: true, hijack: true }
        this.lifeline = await dockerode.getContainer(id).attach(options)
        this.lifeline.on("error", () => {}).resume()
      }
    }

    const remove = async ({ id, lifeline }: LeashedContainer) => {
      if (id === undefined) return
      const container = dockerode.getContainer(id)
      // removal may already be under way, and then this call does not wait for it
      const removed = container.wait({ condition: "removed" }).catch(() => {})
      await container.remove({ force: true, v: true }).catch(() => {})
      lifeline?.end()
      await removed
    }

    const container = yield* Effect.acquireRelease(
      Effect.sync(() => new LeashedContainer()),
      (container) =>
        Effect.promise(() => remove(container)).pipe(Effect.timeoutOption(REMOVAL_TIMEOUT_MILLIS), withRealClock)
    )
    const endedAtOnce = `the container of ${image} ended at once: is there a redis-server, valkey-server or keydb-server in that image?`
    const started = yield* step(() => container.start()).pipe(
      Effect.mapError((reason) =>
        /no such container/i.test(reason) ? endedAtOnce : `the container of ${image} did not start: ${reason}`
      ),
      Effect.uninterruptible
    )
    const id = started.getId()
    return {
      url: `redis://${started.getHost()}:${started.getMappedPort(REDIS_PORT)}`,
      // waiting for it may fail as well, as it is removed as soon as it has ended
      ended: Effect.andThen(Effect.ignore(step(() => dockerode.getContainer(id).wait())), Effect.fail(endedAtOnce))
    }
  }, withRealClock)
