/**
 * `pnpm bench --compare`, run as a user runs it: what it says, and that every server that it starts ends with it. It needs a RedisServer.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, layer } from "@effect/vitest"
import { Effect, FileSystem, Schedule, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { fileURLToPath } from "node:url"

const program = fileURLToPath(new URL("../../packages/bench/dist/main.js", import.meta.url))

/** Starts the comparison with a directory for the servers' files, which servers that run as other users can reach and remove files from. */
const start = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const directory = yield* fs.makeTempDirectoryScoped({ directory: "/tmp", prefix: "compare-test-" })
  yield* fs.chmod(directory, 0o777)
  const bench = yield* ChildProcess.make(process.execPath, [program, "--compare", "--quick", ...args], {
    env: { PATH: process.env["PATH"], TMPDIR: directory },
    forceKillAfter: "10 seconds"
  })
  return { bench, directory, lines: bench.all.pipe(Stream.decodeText(), Stream.splitLines) }
})

/** Waits until the servers are gone with their files. */
const awaitEmpty = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const left = yield* Effect.repeat(fs.readDirectory(directory), {
    until: (files) => files.length === 0,
    schedule: Schedule.spaced("100 millis"),
    times: 300
  })
  assert.deepStrictEqual(left, [], "files of servers")
})

const measures = Effect.fnUntraced(function* (workload: string, candidates: string) {
  const { bench, directory, lines } = yield* start("--only", workload, "--candidates", candidates)
  const output = (yield* Stream.runCollect(lines)).join("\n")
  assert.strictEqual(yield* bench.exitCode, 0, output)
  yield* awaitEmpty(directory)
  return output
})

/** Every setting of a system has its figures, or a line that says how to get the system. */
const assertMeasured = (output: string, names: ReadonlyArray<string>, installation: RegExp) => {
  for (const name of names) {
    const row = output.split("\n").find((line) => line.startsWith(`${name}  `))
    if (row !== undefined) assert.match(row, /\d/)
    else assert.match(output, new RegExp(`^${name}: left out, there is no .*${installation.source}$`, "m"))
  }
}

layer(NodeServices.layer, { excludeTestServices: true })("compare", (it) => {
  for (const [system, names, installation] of [
    ["mariadb", ["mariadb row, durable", "mariadb row, fast", "mariadb GET_LOCK"], /apt-get install mariadb-server/],
    [
      "postgresql",
      ["postgresql row, durable", "postgresql row, fast", "postgresql advisory"],
      /apt-get install postgresql/
    ],
    ["etcd", ["etcd, durable", "etcd, fast"], /apt-get install etcd-server/]
  ] as const) {
    it.effect(
      `Two processes are never inside one lock of ${system} at once, or the run says how to get ${system}`,
      () =>
        Effect.gen(function* () {
          const candidates = [...new Set(names.map((name) => name.split(",")[0]))].join(",")
          assertMeasured(yield* measures("hand-off-2", candidates), names, installation)
        })
    )
  }

  it.effect("A comparison that is killed leaves no server behind", () =>
    Effect.gen(function* () {
      const { bench, directory, lines } = yield* start(
        "--only",
        "waiting",
        "--candidates",
        "postgresql advisory,etcd/fast"
      )
      const begun = yield* lines.pipe(
        Stream.takeUntil((line) => line.includes("round 1")),
        Stream.runCollect
      )
      if (begun.every((line) => !line.includes("round 1"))) assert.match(begun.join("\n"), /left out, there is no/)
      yield* bench.kill({ killSignal: "SIGKILL" })
      yield* awaitEmpty(directory)
    })
  )

  it.effect("An unknown system or workload is an error that names it", () =>
    Effect.gen(function* () {
      for (const [option, value, reason] of [
        ["--candidates", "etcd/slow", "there is no candidate etcd/slow"],
        ["--only", "W1", "there is no workload W1"]
      ] as const) {
        const { bench, lines } = yield* start(option, value)
        const output = (yield* Stream.runCollect(lines)).join("\n")
        assert.strictEqual(yield* bench.exitCode, 2)
        assert.include(output, reason)
      }
    })
  )
})
