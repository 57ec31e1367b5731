// Who may import whom: `pnpm arrows`.
import { readdirSync } from "node:fs"

/**
 * The folders of packages/core/src/internal, from top to bottom. Arrows go down only: a module imports from its own folder and from those
 * below, so that modules which name each other's types are in one folder, or one of them is public. A public module belongs to the folder
 * that lists it, or else to `public`.
 */
const folders = [
  { folder: "index", holds: "all public modules", modules: ["index"] },
  {
    folder: "coordination",
    holds: "what is built on locks: elections, work that is done once, schedules",
    modules: ["LeaderElection", "Singleton", "RunOnce", "DistributedCron"]
  },
  { folder: "public", holds: "the kinds of lock, and the RedisLock service" },
  {
    folder: "locks",
    holds: "what stands behind the public values; it may name their types",
    may: { types: ["public"] }
  },
  { folder: "quorum", holds: "clients whose store is a majority of others" },
  { folder: "client", holds: "LockClient: what all locks of one service share" },
  { folder: "acquire", holds: "the steps of one acquisition" },
  { folder: "wait", holds: "the fibers of this process that wait, and what wakes them" },
  { folder: "hold", holds: "leases, their renewal, their end" },
  { folder: "kinds", holds: "what differs between the kinds of lock" },
  { folder: "store", holds: "the seam, and the stores behind it", modules: ["LockStore", "RedisDriver"] },
  { folder: "options", holds: "checks of what the user has passed", modules: ["AcquireOptions"] },
  { folder: "time", holds: "alarms, schedules, the monotonic clock" },
  {
    folder: "report",
    holds: "errors, metrics, and how things are shown",
    modules: ["LockError", "LockState", "Holding"]
  }
]

const core = "^packages/core/src/"
const names = new Set(folders.map(({ folder }) => folder))
const claimed = folders.flatMap(({ modules = [] }) => modules)
const pathsOf = ({ folder, modules = [] }) =>
  folder === "public"
    ? [`${core}(?!(${claimed.join("|")})\\.ts$)[^/]+\\.ts$`]
    : [`${core}internal/${folder}/`, ...modules.map((module) => `${core}${module}\\.ts$`)]

for (const { name } of readdirSync(new URL("packages/core/src/internal", import.meta.url), { withFileTypes: true })) {
  if (!names.has(name)) throw new Error(`packages/core/src/internal/${name} is missing in .dependency-cruiser.mjs`)
}

/** Two files that are one concept: they may name each other's types. */
const pairs = [["packages/bench/src/Candidate", "packages/bench/src/Performer"]].map((pair) =>
  pair.map((file) => `^${file}\\.ts$`)
)

/** What all locks of one service share: its parts are given the whole, and name its type. */
const client = `${core}internal/client/LockClient\\.ts$`

const isRuntime = { dependencyTypesNot: ["type-only"] }

/** One rule for each pair of folders that is out of order. */
const arrowsUp = (kind, how) =>
  folders.flatMap((lower, floor) =>
    folders
      .slice(0, floor)
      .filter(({ folder }) => !lower.may?.[kind]?.includes(folder))
      .map((upper) => ({
        name: `${kind === "types" ? "type-" : ""}arrow-up-from-${lower.folder}-to-${upper.folder}`,
        severity: "error",
        comment: `${upper.folder} is above ${lower.folder}: arrows go down only.`,
        from: { path: pathsOf(lower) },
        to: { path: pathsOf(upper), ...(kind === "types" ? { pathNot: client } : undefined), ...how }
      }))
  )

export default {
  forbidden: [
    {
      name: "runtime-cycle",
      severity: "error",
      comment: "Of modules that import each other, one runs before what it needs is there.",
      from: { path: "^packages/[^/]+/src/" },
      to: { circular: true, viaOnly: isRuntime }
    },
    {
      name: "type-cycle",
      severity: "error",
      comment:
        "Files that name each other's types can only be read together. The client is the exception: it consists of the parts to which it is given.",
      from: { path: "^packages/[^/]+/src/", pathNot: [...pairs.flat(), client] },
      to: { circular: true, viaOnly: { pathNot: client } }
    },
    ...pairs.map((pair) => ({
      name: "type-cycle-beyond-a-pair",
      severity: "error",
      comment: "These two are one concept, and no others belong to it.",
      from: { path: pair },
      to: { circular: true, via: { pathNot: pair.join("|") } }
    })),
    {
      name: "internals-of-another-package",
      severity: "error",
      comment:
        "What is internal changes without notice. Only the benchmark measures the scripts without what is around them.",
      from: { path: "^packages/([^/]+)/src/", pathNot: "^packages/bench/src/candidates/rawOurs\\.ts$" },
      to: { path: "/(src|dist)/internal/", pathNot: "^packages/$1/" }
    },
    {
      name: "test-of-internals",
      severity: "error",
      comment:
        "Tests use the public modules; only those of test/unit and the simulation look behind them, the observed store, which subscribes as a client does, and the clients whose subscriptions close early or which only messages wake.",
      from: {
        path: "^test/",
        pathNot: "^test/(unit|simulation)/|^test/kit/(observedStore|onlyMessages|subscriptions)\\.ts$"
      },
      to: { path: "packages/[^/]+/(src|dist)/internal/" }
    },
    {
      name: "coordination-behind-the-public-modules",
      severity: "error",
      comment:
        "What is built on locks uses them as anyone may. Only a record beside a lock and a candidacy look behind the public modules; schedules of retries, and how things are shown, are nobody's secret.",
      from: {
        path: pathsOf(folders.find(({ folder }) => folder === "coordination")),
        pathNot: `${core}internal/coordination/(record|candidate)\\.ts$`
      },
      to: { path: `${core}internal/(?!coordination/|report/|time/clock\\.ts$)` }
    },
    ...arrowsUp("runtime", isRuntime),
    ...arrowsUp("types", { dependencyTypes: ["type-only"] })
  ],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules|/dist/" },
    exclude: { path: "^test/dist" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["types", "import", "default"] }
  }
}
