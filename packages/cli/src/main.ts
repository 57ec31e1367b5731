/**
 * redis-lock as one effect: from the command line to the exit code.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { createRequire } from "node:module"
import { cli } from "./cli.ts"
import { ExitCode, exitOf } from "./exit.ts"
import * as logger from "./logger.ts"
import { presenter } from "./presenter.ts"
import { said, say, sayLines, sayNow } from "./say.ts"

const { version } = createRequire(import.meta.url)("../package.json") as { readonly version: string }

const environment = Layer.mergeAll(
  NodeServices.layer,
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
  CliOutput.layerPresenter(presenter),
  Logger.layer([logger.make(sayNow)])
)

export const main: Effect.Effect<number> = Command.run(cli, { version }).pipe(
  Effect.as(0),
  Effect.catchTag(["LockStoreError", "RedisDriverError", "InvalidLockName", "InvalidLockOptions"], (error) =>
    Effect.fail(exitOf(error))
  ),
  Effect.catchTag("ExitWith", ({ code, message }) => Effect.as(message === "" ? Effect.void : say(message), code)),
  // the remaining errors are the parser's, which the presenter has shown
  Effect.catch(() => Effect.succeed(ExitCode.usage)),
  Effect.provide(environment),
  Effect.catchCause((cause) => Effect.as(sayLines(`a bug in redis-lock: ${Cause.pretty(cause)}`), ExitCode.defect)),
  Effect.ensuring(said)
)
