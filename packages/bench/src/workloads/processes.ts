import { type Cost, measure } from "../measure.ts"
import type { ContentionOrder, Performer } from "../Performer.ts"
import { inOrder, type SectionOf } from "../sections.ts"
import type { Run } from "../Workload.ts"

const pairsToWarmUp = 40_000

/**
 * Starts processes that are to contend for one name. They warm up together with as many short sections as possible, so that
 * the code of contention gets compiled.
 */
export const startContenders = async (
  run: Run,
  processes: number,
  order: Pick<ContentionOrder, "name" | "parties" | "permits"> & { readonly warmUpMillis: number }
): Promise<ReadonlyArray<Performer>> => {
  const { name, parties, permits, warmUpMillis } = order
  const performers = await run.startApart(processes, {
    port: run.port,
    otherPorts: run.otherPorts,
    leaseMillis: 30_000
  })
  if (run.warmUp > 1) {
    // Hand-offs are too few for a slow compiler, and share most of their code with uncontended locks.
    const pairs = Math.ceil(pairsToWarmUp / processes)
    const order = { kind: "lock", lockPer: "worker", workers: 1, pairs } as const
    await Promise.all(
      performers.map((performer, process) => performer.pairs({ ...order, prefix: `${name}:warm-up:${process}:` }))
    )
  }
  await contendAll(performers, {
    name: `${name}:warm-up`,
    parties,
    ...(permits === undefined ? undefined : { permits }),
    limitMillis: warmUpMillis,
    thinkMillis: 0
  })
  return performers
}

/** Sends the order to all at once. */
export const contendAll = async (
  performers: ReadonlyArray<Performer>,
  order: ContentionOrder
): Promise<ReadonlyArray<SectionOf>> =>
  inOrder(await Promise.all(performers.map((performer) => performer.contend(order))))

export const measureContenders = async (
  run: Run,
  performers: ReadonlyArray<Performer>,
  order: ContentionOrder
): Promise<{ readonly sections: ReadonlyArray<SectionOf>; readonly cost: Cost }> => {
  let sections: ReadonlyArray<SectionOf> = []
  const cost = await measure(run, performers, async () => {
    sections = await contendAll(performers, order)
  })
  for (const performer of performers) performer.end()
  return { sections, cost }
}

/**
 * What a request takes to the server and back when all processes send at once: the longest 99th percentile of a pair, for
 * both of its requests. A request that was sent earlier by more than this arrived earlier.
 */
export const roundTrip = async (performers: ReadonlyArray<Performer>): Promise<number> => {
  const pairs = (count: number) =>
    Promise.all(
      performers.map((performer, process) =>
        performer.pairs({ kind: "lock", prefix: `round-trip:${process}:`, lockPer: "worker", workers: 1, pairs: count })
      )
    )
  // the code is compiled before it is measured
  await pairs(2000)
  return Math.max(...(await pairs(500)).map(({ p99Micros }) => p99Micros)) / 1000
}
