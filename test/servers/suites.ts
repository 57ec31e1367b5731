/**
 * What `pnpm test:servers` runs on each server, and under which name the page has it.
 */

export interface Suite {
  /** As in the table. */
  readonly title: string
  readonly files: ReadonlyArray<string>
  /** What the title of its outermost group begins with, where a file has several suites. */
  readonly group?: string
  /** Whether the tests start servers of their own, so that there must be a program. */
  readonly startsServers?: boolean
}

const contract = (title: string, kind: string): Suite => ({
  title,
  files: ["contract/ioredis.test.ts"],
  group: `${kind} on `
})

export const suites: ReadonlyArray<Suite> = [
  contract("`Lock`", "a reentrant lock"),
  contract("`FairLock`", "a fair lock"),
  contract("`FencedLock`", "a fenced lock"),
  contract("`SpinLock`", "a spin lock"),
  contract("`NonReentrantLock`", "a non-reentrant lock"),
  contract("`NonReentrantLock`, fair", "a fair non-reentrant lock"),
  contract("`ReadWriteLock`, readers", "a read lock"),
  contract("`ReadWriteLock`, writers", "a write lock"),
  { title: "`MultiLock`", files: ["compose/multiLockContract.test.ts"] },
  {
    title: "`Semaphore`, `PermitSemaphore`",
    files: ["contract/semaphores.test.ts", "contract/semaphoreTotals.test.ts"]
  },
  { title: "`CountDownLatch`", files: ["contract/latches.test.ts"] },
  { title: "locks over node-redis", files: ["contract/nodeRedis.test.ts"] },
  {
    title: "random operations, and what they leave in Redis",
    files: [
      "contract/stores.test.ts",
      "contract/semaphoresStores.test.ts",
      "contract/tokenKeys.test.ts",
      "contract/handOver.test.ts",
      "integration/wireLayout.test.ts",
      "integration/wireLayoutKinds.test.ts",
      "integration/semaphoreLayout.test.ts"
    ]
  },
  {
    title: "full, restarted and read-only servers",
    files: [
      "faults/outOfMemory.test.ts",
      "faults/restartedEmpty.test.ts",
      "faults/readOnly.test.ts",
      "faults/scriptFlush.test.ts"
    ],
    startsServers: true
  },
  { title: "permissions as documented", files: ["faults/documentedPermissions.test.ts"], startsServers: true },
  { title: "locks on a cluster", files: ["contract/cluster.test.ts", "faults/cluster.test.ts"], startsServers: true },
  { title: "Sentinel", files: ["faults/sentinel.test.ts"], startsServers: true },
  { title: "losses that the server reports", files: ["faults/tracking.test.ts"], startsServers: true },
  {
    title: "`acknowledge`",
    files: ["faults/acknowledge.test.ts", "servers/acknowledgeOnCluster.test.ts", "faults/failover.test.ts"],
    startsServers: true
  }
]

/** Those whose titles contain a word; all without one. */
export const chosen = (word: string | undefined): ReadonlyArray<Suite> =>
  suites.filter(({ title }) => word === undefined || title.toLowerCase().includes(word.toLowerCase()))

/** Their test files, for a server that may be started or for one that runs already. */
export const files = (suites: ReadonlyArray<Suite>, isStartable: boolean): ReadonlyArray<string> => [
  ...new Set(suites.flatMap(({ files, startsServers = false }) => (isStartable || !startsServers ? files : [])))
]
