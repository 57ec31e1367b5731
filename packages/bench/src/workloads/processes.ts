import { type Cost, measure } from "../measure.ts"
import type { ContentionOrder } from "../Performer.ts"
import { inOrder, type SectionOf } from "../sections.ts"
import type { Run } from "../Workload.ts"

/**
 * Several processes that want the same: they warm up together with as many short sections as possible, so that the code
 * that contends gets compiled, and then get the order all at once.
 */
export const contendInProcesses = async (
  run: Run,
  processes: number,
  order: ContentionOrder & { readonly warmUpMillis: number }
): Promise<{ readonly sections: ReadonlyArray<SectionOf>; readonly cost: Cost }> => {
  const { warmUpMillis, ...measured } = order
  const { name, parties, permits } = order
  const performers = await run.startApart(processes, { port: run.port, leaseMillis: 30_000 })
  const all = (order: ContentionOrder) => Promise.all(performers.map((performer) => performer.contend(order)))
  await all({
    name: `${name}:warm-up`,
    parties,
    ...(permits === undefined ? undefined : { permits }),
    limitMillis: warmUpMillis * Math.min(2, run.warmUp),
    thinkMillis: 0
  })
  let reports: Awaited<ReturnType<typeof all>> = []
  const cost = await measure(run, performers, async () => {
    reports = await all(measured)
  })
  for (const performer of performers) performer.end()
  return { sections: inOrder(reports), cost }
}
