import type { Connection } from "../Candidate.ts"
import { entryOf } from "../entries.ts"
import { libraryPerformer } from "../performing/libraryPerformer.ts"
import { type Performer, performerElsewhere } from "../Performer.ts"
import { Child } from "./Child.ts"
import type { Command, PerformerArgument } from "./performerProcess.ts"

/** Starts a performer: of a library in this process, of a program in its own. */
export const startPerformer = async (name: string, connection: Connection): Promise<Performer> => {
  const { candidate } = await entryOf(name).load()
  return "open" in candidate ? libraryPerformer(candidate, connection) : candidate.start(connection)
}

/** Starts a performer in a process of its own, for a library as well. */
export const startPerformerApart = async (name: string, connection: Connection): Promise<Performer> => {
  const { candidate } = await entryOf(name).load()
  if ("start" in candidate) return candidate.start(connection)
  const child = new Child("./performerProcess.js", { candidate: name, ...connection } satisfies PerformerArgument)
  await child.hear("ready")
  let commands = 0
  return performerElsewhere(
    (task, order) => {
      const id = ++commands
      child.say("do", { id, task, order } satisfies Command)
      return child.hear(`report ${id}`)
    },
    () => child.end()
  )
}

export const startPerformersApart = (
  count: number,
  name: string,
  connection: Connection
): Promise<ReadonlyArray<Performer>> =>
  Promise.all(Array.from({ length: count }, () => startPerformerApart(name, connection)))
