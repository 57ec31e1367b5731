#!/usr/bin/env node
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import { closeSync } from "node:fs"
import { isatty } from "node:tty"
import { format } from "node:util"
import { ExitCode } from "./exit.ts"
import { main } from "./main.ts"
import { sayNow } from "./say.ts"

// ioredis warns so: its lines are ours as well, and must not touch process.stderr either
console.warn = (...parts) => sayNow(format(...parts))

/** Those of stdin, stdout and stderr that are a terminal. */
const terminals = [0, 1, 2].filter((fd) => isatty(fd))

/** Node.js gives a terminal back when it exits, and aborts if that has hung up; it leaves alone what is closed. */
const leaveGoneTerminals = (): void => {
  for (const fd of terminals) if (!isatty(fd)) closeSync(fd)
}

// Not NodeRuntime.runMain: redis-lock handles signals itself while a command runs, and exits with the command's code.
const runMain = Runtime.makeRunMain(({ fiber, teardown }) =>
  fiber.addObserver((exit) =>
    teardown(exit, (code) => {
      leaveGoneTerminals()
      process.exit(code)
    })
  )
)

runMain(main, { teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) ? Number(exit.value) : ExitCode.defect) })
