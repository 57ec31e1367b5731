/**
 * `node scripts/acquisition.mjs`: how many calls, files and hops between files one acquisition of a free lock makes in the core package, and
 * its release. Every function of `packages/core/dist` is instrumented as it is loaded; run `pnpm build` before. `--list` prints the calls.
 */
import { createRequire, register } from "node:module"
import { dirname } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const core = fileURLToPath(new URL("../packages/core/dist/", import.meta.url))
const calls = []
let isTracing = false

globalThis.__called = (file, name) => {
  if (isTracing) calls.push({ file, name })
}

register(
  `data:text/javascript,${encodeURIComponent(`
import ts from ${JSON.stringify(import.meta.resolve("typescript6"))}
import { fileURLToPath } from "node:url"
const core = ${JSON.stringify(core)}
const isFunction = (node) =>
  ts.isFunctionDeclaration(node) || ts.isFunctionExpression(node) || ts.isArrowFunction(node) ||
  ts.isMethodDeclaration(node) || ts.isConstructorDeclaration(node) || ts.isGetAccessor(node)
const nameOf = (node) =>
  node.name?.getText() ??
  (ts.isConstructorDeclaration(node) ? "constructor of " + (node.parent.name?.text ?? "a class") : undefined) ??
  (ts.isVariableDeclaration(node.parent) || ts.isPropertyAssignment(node.parent) ? node.parent.name.getText() : "(function)")
export const load = async (url, context, next) => {
  const loaded = await next(url, context)
  if (!url.startsWith("file:") || !fileURLToPath(url).startsWith(core)) return loaded
  const text = String(loaded.source)
  const file = ts.createSourceFile(url, text, ts.ScriptTarget.Latest, true)
  const inserts = []
  const visit = (node) => {
    if (isFunction(node) && node.body !== undefined) {
      const call = "globalThis.__called(" + JSON.stringify(fileURLToPath(url).slice(core.length)) + "," + JSON.stringify(nameOf(node)) + ")"
      if (ts.isBlock(node.body)) {
        // a constructor may touch nothing before it has called that of its base
        const first = node.body.statements.find((statement) => /^super\\(/.test(statement.getText()))
        inserts.push([first === undefined ? node.body.getStart() + 1 : first.getEnd(), call + ";"])
      } else {
        inserts.push([node.body.getStart(), "(" + call + ",("], [node.body.getEnd(), "))"])
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  let source = text
  for (const [at, insert] of inserts.map((insert, order) => [...insert, order]).sort((a, b) => b[0] - a[0] || b[2] - a[2])) {
    source = source.slice(0, at) + insert + source.slice(at)
  }
  return { ...loaded, source }
}
`)}`
)

const load = (path) => import(pathToFileURL(core + path).href)
const { Effect, Exit, Layer, Scope, Stream } = await import(createRequire(core).resolve("effect"))
const { Lock, RedisDriver, RedisLock } = await load("index.js")

/** A driver whose Redis grants every lock, and replies at once. */
const granting = Layer.succeed(RedisDriver.RedisDriver, {
  eval: RedisDriver.evalOf(({ name }, _keys, _args, onExit) => {
    queueMicrotask(() => onExit(Exit.succeed(name.endsWith("/acquire") ? Date.now() * 1000 : 1)))
    return { cancel: () => {} }
  }),
  subscribe: () => Stream.never,
  scan: () => Stream.empty,
  publish: "PUBLISH",
  sharesSubscriptions: true,
  slot: () => 0,
  server: () => "one",
  commandTimeoutMillis: 5000
})

const traced = (effect) =>
  Effect.suspend(() => {
    calls.length = 0
    isTracing = true
    return Effect.ensuring(
      effect,
      Effect.sync(() => (isTracing = false))
    )
  })

const report = (what) => {
  const hops = (of) => calls.filter((call, i) => i > 0 && of(call.file) !== of(calls[i - 1].file)).length
  console.log(
    `${what}: ${calls.length} calls, ${new Set(calls.map(({ file }) => file)).size} files, ` +
      `${hops((file) => file)} hops between files, ${hops(dirname)} between folders`
  )
  if (process.argv.includes("--list")) for (const { file, name } of calls) console.log(`  ${file} ${name}`)
}

await Effect.runPromise(
  Effect.gen(function* () {
    // what is done once
    yield* Effect.scoped(Lock.scoped("ledger"))
    const scope = yield* Scope.make()
    yield* traced(Lock.scoped("ledger")).pipe(Effect.provideService(Scope.Scope, scope))
    report("an acquisition")
    yield* traced(Scope.close(scope, Exit.void))
    report("its release")
  }).pipe(Effect.provide(Layer.provide(RedisLock.layer(), granting)))
)
