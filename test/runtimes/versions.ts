/**
 * What `pnpm test:runtimes` tries: runtimes and clients, pinned.
 */
import { arch, platform } from "node:process"

export interface Runtime {
  /** As in the table. */
  readonly title: string
  /** What npm installs. */
  readonly dependencies: Readonly<Record<string, string>>
  /** Where its program is then, below node_modules; `*` stands for the one folder that is there. */
  readonly program: string
  /** What the program wants before a file. */
  readonly args: ReadonlyArray<string>
  /** The same with no more permissions than the page names, where it has permissions. */
  readonly leastArgs?: ReadonlyArray<string>
}

const node = (version: string): Runtime => ({
  title: `Node ${version}`,
  // what the package `node` would install, without its script
  dependencies: { node: `npm:node-${platform === "win32" ? "win" : platform}-${arch}@${version}` },
  program: "node/bin/node",
  args: []
})

export const runtimes: ReadonlyArray<Runtime> = [
  // the oldest that the packages' `engines` admit
  node("20.19.0"),
  node("22.23.3"),
  node("24.21.0"),
  { title: "Bun 1.4.5", dependencies: { bun: "1.4.5" }, program: "@oven/*/bin/bun", args: [] },
  {
    title: "Deno 2.9.6",
    dependencies: { deno: "2.9.6" },
    program: "@deno/*/deno",
    args: ["run", "--allow-all", "--no-remote"],
    leastArgs: ["run", "--no-prompt", "--allow-net", "--allow-env"]
  }
]

export interface Client {
  /** As in the table. */
  readonly title: string
  /** The program that is run over it, in `smoke/`. */
  readonly program: "locks" | "commandLine"
  /** What npm installs beside `effect`; ours are packed from this repository. */
  readonly ours: ReadonlyArray<string>
  readonly dependencies: Readonly<Record<string, string>>
  /** The module that makes the layers, in `smoke/`. */
  readonly layers?: "ioredis" | "nodeRedis"
}

const ioredis = (version: string): Client => ({
  title: `ioredis ${version}`,
  program: "locks",
  ours: ["effect-redis-lock", "@effect-redis-lock/ioredis"],
  dependencies: { ioredis: version },
  layers: "ioredis"
})

/** By Effect's own `Redis` service. */
const nodeRedis = (version: string): Client => ({
  title: `node-redis ${version}`,
  program: "locks",
  ours: ["effect-redis-lock"],
  dependencies: { redis: version, "@effect/platform-node": "4.1.0" },
  layers: "nodeRedis"
})

export const effect = "4.1.0"

export const clients: ReadonlyArray<Client> = [
  // the oldest and the newest of our peer range
  ioredis("5.3.0"),
  ioredis("5.11.1"),
  ioredis("6.0.0"),
  // of the peer range of @effect/platform-node, which does not load with 5.0
  nodeRedis("5.1.0"),
  nodeRedis("6.3.1"),
  {
    title: "the command line",
    program: "commandLine",
    ours: ["effect-redis-lock", "@effect-redis-lock/ioredis", "@effect-redis-lock/cli"],
    dependencies: {}
  }
]
