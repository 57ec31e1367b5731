#!/usr/bin/env node
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import { ExitCode } from "./exit.ts"
import { main } from "./main.ts"

// Not NodeRuntime.runMain: what signals do is decided while a command runs, and the exit code is the command's.
const runMain = Runtime.makeRunMain(({ fiber, teardown }) =>
  fiber.addObserver((exit) => teardown(exit, (code) => process.exit(code)))
)

runMain(main, { teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) ? Number(exit.value) : ExitCode.defect) })
