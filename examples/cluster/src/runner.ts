/**
 * One runner: `node dist/runner.js <port>`. Start as many as you like, on as many machines.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, References } from "effect"
import { Singleton } from "effect/cluster"
import * as Cart from "./Cart.ts"
import { runnerLayer } from "./storage.ts"

const port = Number(process.argv[2] ?? 34431)

/** Runs in one runner of all. */
const ticker = Singleton.make(
  "ticker",
  Effect.sync(() => console.log(`runner ${port}: the singleton runs here`))
)

NodeRuntime.runMain(
  Layer.launch(Layer.merge(Cart.layer, ticker).pipe(Layer.provide(runnerLayer(port)))).pipe(
    Effect.provideService(References.MinimumLogLevel, "Error")
  )
)
