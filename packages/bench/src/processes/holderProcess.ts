/**
 * Holds one lock until it is told to release it, or ended.
 */
import { entryOf } from "../candidates/catalog.ts"
import { argument, hear, run, say } from "./Parent.ts"

export interface HolderArgument {
  readonly candidate: string
  readonly port: number
  readonly name: string
  readonly leaseMillis: number
}

run(async () => {
  const { candidate, leaseMillis, name, port } = argument<HolderArgument>()
  const session = await (await entryOf(candidate).load()).candidate.open({ port, leaseMillis })
  const held = await session.hold([name])
  const toRelease = hear("release")
  say("holding")
  await toRelease
  await held.release()
})
