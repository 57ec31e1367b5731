/**
 * Performs the parent's tasks with one library, until it is killed.
 */
import type { Connection } from "../Candidate.ts"
import { entryOf } from "../entries.ts"
import { libraryPerformer } from "../performing/libraryPerformer.ts"
import type { Task } from "../Performer.ts"
import { argument, listen, run, say } from "./Parent.ts"

export interface PerformerArgument extends Connection {
  readonly candidate: string
}

export interface Command {
  readonly id: number
  readonly task: Task
  readonly order: unknown
}

run(async () => {
  const { candidate: name, ...connection } = argument<PerformerArgument>()
  const { candidate } = await entryOf(name).load()
  if (!("open" in candidate)) throw new Error(`${name} is a program of its own`)
  const performer = await libraryPerformer(candidate, connection)
  listen<Command>("do", async ({ id, order, task }) => {
    const report = await (performer[task] as (order: unknown) => Promise<unknown>)(order)
    say(`report ${id}`, report)
  })
  say("ready")
})
