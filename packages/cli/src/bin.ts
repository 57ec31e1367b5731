#!/usr/bin/env node
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import { ExitCode } from "./exit.ts"
import { main } from "./main.ts"

// Not NodeRuntime.runMain: redis-lock handles signals itself while a command runs, and exits with the command's code.
const runMain = Runtime.makeRunMain(({ fiber, teardown }) =>
  fiber.addObserver((exit) => teardown(exit, (code) => process.exit(code)))
)

runMain(main, { teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) ? Number(exit.value) : ExitCode.defect) })
