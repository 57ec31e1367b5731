// Writes docs/behaviours.md: the behaviours that Redisson's own tests verify, and the tests here that cover them. With --check
// it fails if the page is not current. Either way it fails if a behaviour has neither a test whose title begins with its number
// nor stands in one of the two tables below.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const page = join(root, "docs/behaviours.md")

// Which behaviours a test proves whose title has no number: of every kind of lock and on every store, the contract does.
const proved = [
  [
    "contract/suite/excluding.ts",
    "A lock is free, then held, then free again, and can be used again",
    [1, 2, 3, 25, 46, 47, 76, 77, 128, 130]
  ],
  [
    "contract/suite/excluding.ts",
    "A lock excludes the fibers of all clients from each other",
    [20, 21, 22, 24, 63, 86]
  ],
  [
    "contract/suite/excluding.ts",
    "A lock excludes other clients, and is handed over when it is released",
    [59, 60, 66, 70]
  ],
  ["contract/suite/excluding.ts", "A lock takes any allowed name", [31, 114]],
  [
    "contract/suite/looking.ts",
    "Only in its section is a lock the caller's: elsewhere Lock.currentHolding fails with NotLockOwner",
    [4, 5, 8, 48, 51, 78, 81, 129, 131]
  ],
  [
    "contract/suite/reentry.ts",
    "Re-entry works anywhere down a section, through timeouts and forks, and is counted",
    [6, 49, 79, 127]
  ],
  [
    "contract/suite/reentry.ts",
    "Re-entry never lowers the deadline, and an inner exit never frees the outer hold",
    [13, 119]
  ],
  ["contract/suite/reentry.ts", "Re-entry spans everything below withOwner", [32, 33]],
  ["contract/suite/trying.ts", "Trying re-enters, and others are refused until the last release", [7, 50, 80, 102]],
  ["contract/suite/trying.ts", "Trying gives the lock, or None", [26, 62]],
  [
    "contract/suite/releasing.ts",
    "A forced release frees the lock, and its section fails with LockLost even if it succeeded",
    [9, 52, 82, 107]
  ],
  [
    "contract/suite/leases.ts",
    "A waiter gets the lock when the lease of its holder is over, whose late release fails",
    [10, 16, 53, 56, 83, 84, 118, 121, 124]
  ],
  ["contract/suite/leases.ts", "A lease that has run out is seen by the first check", [11]],
  [
    "contract/suite/waiting.ts",
    "A wait ends with LockTimeout after waitTime, and says who holds the lock",
    [14, 54, 61, 85]
  ],
  [
    "contract/suite/nonReentrant.ts",
    "Re-entry is refused in a section, even in a timeout or another fiber below it",
    [67, 68, 69]
  ],
  [
    "contract/suite/fenced.ts",
    "A fenced lock counts the grants of the name across clients, but no re-entries or denials",
    [71, 72]
  ],
  ["contract/suite/fair.ts", "A fair lock serves in the order of asking, across clients", [73, 74]],
  [
    "contract/suite/fair.ts",
    "A waiter of a fair lock that ${how} leaves nothing, and the next is served at once",
    [87, 88]
  ],
  [
    "contract/suite/readWrite.ts",
    "Readers share a lock, in one client and across clients, and keep writers out",
    [106, 108, 120]
  ],
  ["contract/suite/readWrite.ts", "A writer keeps readers and writers out, everywhere", [101]],
  ["contract/suite/readWrite.ts", "A writer may read, and each side sees its own holds", [104, 109, 111]],
  [
    "contract/suite/readWrite.ts",
    "A writer that goes on reading lets other readers in at once, and no writer",
    [103, 105]
  ],
  ["contract/suite/readWrite.ts", "Readers that wait for a writer are let in together when it ends", [110]],
  ["contract/suite/readWrite.ts", "A forced release of each side frees its own holders", [112]],
  [
    "contract/suite/readWrite.ts",
    "Readers whose lease has run out do not keep a writer out, and other readers keep theirs",
    [125, 126]
  ],
  ["contract/suite/readWrite.ts", "The holds of a reader can end in any order", [132]],
  [
    "faults/fairQueue.test.ts",
    "500 fair waiters of one process are served in their order, with at most 8 commands each",
    [75]
  ],
  [
    "redisson/lock.test.ts",
    "23. 5000 tasks over 5 names take turns under each, need one subscribing connection, and leave no channel",
    [29]
  ],
  [
    "redisson/permitSemaphore.test.ts",
    "185. a list released in two parts restores the counts; releasing it again is refused",
    [180, 186]
  ],
  ["simulation/kinds.ts", "plain locks and one that spins", [30]],
  ["simulation/kinds.ts", "readers and writers", [133]],
  ["simulation/kinds.ts", "anonymous permits", [166]],
  ["simulation/kinds.ts", "permits", [194]],
  [
    "contract/semaphores.test.ts",
    "A semaphore serves all waiters that fit after one signal, first come, first served",
    [162, 163, 165, 178]
  ],
  [
    "contract/semaphores.test.ts",
    "A wait for permits ends after the wait time, and says what was wanted and free",
    [164, 179]
  ],
  [
    "integration/permitPlaces.test.ts",
    "${count} clients that want ${wanted} of ${permits} permits need about three scripts a section",
    [192]
  ],
  [
    "unit/permitTurns.test.ts",
    "Somebody who wants both gets them though two fibers of ${its} process go on taking one each for ${seconds} seconds",
    [193]
  ],
  ["contract/latches.test.ts", "A wait for a latch ends after the wait time, and not before the count is known", [201]],
  ["contract/latches.test.ts", "A latch wakes all waiters with one look at the count, whoever counts down", [202, 203]],
  [
    "faults/restartedEmpty.test.ts",
    "A server that restarts empty interrupts the section that had a lock there: the next renewal finds it gone",
    [36]
  ],
  ["compose/multiLockContract.test.ts", "A lock of several holds all its members, and then none", [34, 134, 135]],
  [
    "compose/multiLockContract.test.ts",
    "A lock of several holds nothing while one is taken, and times out by its own name",
    [136]
  ],
  [
    "compose/multiLockContract.test.ts",
    "A lock of several may have members on another service, and one that a majority keeps",
    [138]
  ],
  [
    "compose/multiLockContract.test.ts",
    "A wait for a lock of several is woken by each taken member, one after the other",
    [137]
  ],
  ["unit/interruption/interruption.test.ts", "Interruption ${scenario} leaves nothing behind", [17]],
  ["unit/interruption/interruption.test.ts", "while the holder lets go, leaves nothing behind", [55]],
  ["unit/outage.test.ts", "A waiter for ${what} that gives up during an outage fails with the store's failure", [57]],
  [
    "unit/fairOutage.test.ts",
    "A client keeps nothing of a fair lock whose last waiter has given up while the store was silent",
    [100]
  ],
  [
    "faults/serverDown.test.ts",
    "A caller that gives up while the server is killed is told at once, and nothing is acquired when it is back",
    [18]
  ],
  ["integration/cluster.test.ts", "A lock is handed over on a cluster: ${kind}", [58, 113]],
  [
    "integration/manyReaders.test.ts",
    "A read lock lives as long as the longest of its holds, in whatever order its readers leave",
    [115, 117]
  ],
  ["integration/manyReaders.test.ts", "Many readers of one lock are renewed, each with its own lease in Redis", [123]]
]

const groupLocks =
  "a lock of many values in one hash is not offered: a multi-lock over ordinary names does the same, and excludes other clients"

// Why a behaviour has no test of its own.
const reasons = {
  28: "there are no topics here; the tests of the cluster and of Sentinel cover locks during a failover",
  35: "there are no listeners here; 27 shows that keyspace events announce the same",
  116: "here leaving a re-entry shortens no lease; a reader has one lease for all its holds",
  182: "every acquisition here is asynchronous: 178 and 185 cover it",
  ...Object.fromEntries(Array.from({ length: 13 }, (_, i) => [139 + i, groupLocks]))
}

const sections = [
  [
    "Plain lock",
    1,
    `a lock can be acquired and released twice
isLocked before, during and after a hold
isLocked as seen by another thread
held by the current thread before, during and after a hold
not held by another thread of the same client
hold count of two nested holds
tryLock is re-entrant, and refused to others until the last release
only the holder can release
force release
a waiter gets the lock when an explicit lease ends
a release after the lease has ended fails
remaining time of an explicit lease, after a release, and of the watchdog's lease
releasing inner holds keeps the explicit lease
a limited wait ends on time
an uninterruptible wait goes on when interrupted
a dead client's lock becomes free
an interrupted attempt leaves no lock behind that is renewed
a server that is down is an error, not a hang
the watchdog tracks every hold under contention
15 tasks of one client take turns
16 clients with 100 sections each take turns
100 clients with one section each take turns
5000 tasks need few subscriptions and leave no channel
four concurrent timed attempts on two names succeed
on a cluster: acquire, isLocked, release
on a cluster: 30 rounds of tryLock
keyspace events announce expiry and release
locks beside short-lived topics during a failover
many threads share many names
the same with waits of a few milliseconds
a lock named after a map entry
an explicit owner holds the lock until its release
the next explicit owner follows, as seen through another handle
a multi-lock through other façades locks its members
listeners through other façades`
  ],
  [
    "Renewal",
    36,
    `plain lock: the release fails after the server lost its state
plain lock: the next hold is renewed as usual
both hold for a read lock
both hold for a write lock, and for a third hold
nested holds of one thread do not keep the next thread's hold from being renewed
a read that has ended is not renewed
nested reads that have ended are not renewed`
  ],
  [
    "Subscriptions",
    43,
    `a subscription confirmed while its waiter times out breaks nothing
a failed subscription does not keep others from subscribing
one message reaches every listener`
  ],
  [
    "Spin lock",
    46,
    `a lock can be acquired and released twice
isLocked, seen by either thread
held by the current thread or by another
hold count
re-entrancy
only the holder can release
force release
the next waiter follows when a lease ends; the late release fails
a limited wait ends on time
an interrupted wait does not acquire
a dead client's lock becomes free
a server that is down is an error
on a cluster with replicas
an acquisition is pending while the lock is held, and completes after its release
the same with a limited wait
a limited wait without success
tryLock of a held lock and of a free one
concurrent tasks and clients exclude each other
exponential backoff between requests
constant backoff between requests`
  ],
  [
    "Non-reentrant locks",
    66,
    `a contender waits for the release
a second acquisition by the holder fails, by every method
one release frees the lock after such a refusal
the same through two handles of one name
all of these for the fair variant`
  ],
  [
    "Fenced lock",
    71,
    `the first tokens are 1 and 2
every grant consumes a token`
  ],
  [
    "Fair lock",
    73,
    `threads that never release are followed in order as their leases end
many threads get the lock in the order of their requests
500 concurrent threads all complete
a lock can be acquired and released twice
isLocked, seen by either thread
held by the current thread or by another
hold count
re-entrancy
only the holder can release
force release
the next waiter follows when a lease ends; a late release
a dead client's lock becomes free
a limited wait ends on time
concurrent tasks and clients exclude each other
a waiter that gave up does not delay others
a waiter that gave up does not free the holder's lock
a name mapper applies to the queue
the score of each place in the queue
when a waiter gives up, those behind it move up
a release serves the first waiter at once
serving a waiter lowers the scores of the others
a repeated request changes no place
tryLock takes no place in the queue
waiters that never return are passed over
scores of waits without success do not add up
scores do not add up with grants in between
scores do not add up behind a dead waiter
a waiter whose server stops answering leaves no place in the queue`
  ],
  [
    "Read-write lock",
    101,
    `a writer blocks readers until its last release
the write lock is re-entrant
a writer may read, and goes on reading after its write release
no other thread reads while a writer reads
the thread may write again after its last read release
readers share the lock and block writers, themselves included
force release of a read lock that nobody holds
the read side is locked while anybody reads
acquire write and read, release read and write
all readers behind a writer are woken
the read side is not locked by a writer alone
force release frees its own side only
a read-write lock on a cluster
a name that contains braces
a writer waits for the longest read lease and no longer
a nested read that has ended does not prolong the first
a vanished reader blocks writers for its own lease only
a vanished writer blocks readers for its lease
a shorter lease on re-entry does not shorten the first
a short read lease delays no other reader
the next waiter follows when a write lease ends; the late release fails
write and read holds are both renewed, also after the downgrade
50 readers outlast the watchdog's lease
a dead writer's lock becomes free
a dead reader is not kept alive by others' renewals
20 dead readers do not delay a writer
hold counts of both sides
isLocked of the read side
held by the current thread or by another
a lock can be acquired and released twice
only the reader can release
the read lock is re-entrant
random readers and writers exclude each other`
  ],
  [
    "Multi-lock",
    134,
    `three names are held while the multi-lock is
isHeldByThread of an owner's id
one of ten threads that call tryLock succeeds
a second thread waits for the release
members on three servers`
  ],
  [
    "Group multi-lock",
    139,
    `one owner and hold count per value
re-entrancy
force release
renewal
tryLock
a limited wait behind a lease
isHeldByCurrentThread and isLocked
the contract of a plain lock
leases and dead clients
interruption
server down, and on a cluster
few subscriptions
concurrency`
  ],
  [
    "Semaphore",
    152,
    `permits are set once
permits with an expiry
acquire and release change the count
a release creates permits that were never set
two releases before any permits were set
acquiring and releasing zero permits
adding permits
removing permits, below zero
draining
release if it exists
a blocking acquire waits for a release
a blocking acquire of several permits
tryAcquire of several permits
a waiter for several permits is woken when enough are free
mutual exclusion with one permit
Integer.MAX_VALUE permits`
  ],
  [
    "Permit semaphore",
    168,
    `an absent semaphore has no permits available
permits are set once
permit ids have 32 characters
available permits, also after expiry
acquired permits, also after expiry
the total is constant
an expiry of the whole semaphore
a waiter gets a permit when its lease ends; the late release fails
setting the total
adding permits, also below zero
a blocking acquire gets the permit that is released
tryAcquire, at once and with a limited wait
several permits in one call
tryAcquire of several permits
acquiring completes promptly
releasing an unknown id fails
tryRelease of an expired id
releasing a list of ids in parts
the number of ids that tryRelease has released
a batch that has expired is recovered
tryRelease of expired ids changes nothing
a list of ids is released as a whole or not at all
updating a lease
reading a lease
two threads that each need all permits both succeed
one thread that needs one permit of two and one that needs both both succeed
mutual exclusion with one permit
on a cluster with a key prefix`
  ],
  [
    "Count-down latch",
    196,
    `the count of an absent latch is zero
the count is set once
countDown stops at zero
awaiting a latch that was never set
a timed wait succeeds in time
a timed wait runs out
five concurrent waits
as many waiters as calls of countDown
deleting a latch`
  ]
]

const walk = (directory) =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return /^(node_modules|dist.*)$/.test(entry.name) ? [] : walk(path)
    return entry.name.endsWith(".test.ts") ? [path] : []
  })

const link = (path) => `[${path}](../${path})`

const tested = new Map()
for (const path of walk(join(root, "test")).toSorted()) {
  for (const [, number] of readFileSync(path, "utf8").matchAll(/(?<=["'`])(\d+)\. (?=\S)/g)) {
    tested.set(Number(number), (tested.get(Number(number)) ?? new Set()).add(link(relative(root, path))))
  }
}

const problems = []
for (const [file, title, numbers] of proved) {
  const path = `test/${file}`
  if (!readFileSync(join(root, path), "utf8").includes(title)) problems.push(`${path} has no test "${title}"`)
  const test = `${link(path)} › ${title.replaceAll(/\$\{.*?\}/g, "…")}`
  for (const number of numbers) tested.set(number, (tested.get(number) ?? new Set()).add(test))
}

const where = (number) => {
  if (tested.has(number)) return [...tested.get(number)].join(", ")
  if (reasons[number] !== undefined) return `not tested: ${reasons[number]}`
  problems.push(`behaviour ${number} has neither a test nor a reason`)
  return ""
}

const lines = [
  "# Redisson's behaviours, and the tests here that cover them",
  "",
  "Redisson's own tests verify 204 behaviours of its locks, semaphores and latches. Where a test of the library's own proves one, that",
  "one is named. Else the title of a test in `test/redisson` begins with the number of the behaviour that it covers; the comment at the",
  "top of its file names the differences, and how leases and waits were shortened.",
  "`pnpm behaviours` writes this page, and the gate checks that it is complete and current."
]
let expected = 1
for (const [title, first, text] of sections) {
  if (first !== expected) problems.push(`section "${title}" should begin at ${expected}`)
  const behaviours = text.split("\n")
  expected += behaviours.length
  lines.push("", `## ${title}`, "", "| | behaviour | tested in |", "| --- | --- | --- |")
  behaviours.forEach((behaviour, i) => lines.push(`| ${first + i} | ${behaviour} | ${where(first + i)} |`))
}
if (expected !== 205) problems.push(`there are ${expected - 1} behaviours, not 204`)

const text = `${lines.join("\n")}\n`
if (!process.argv.includes("--check")) writeFileSync(page, text)
else if (readFileSync(page, "utf8") !== text) problems.push('docs/behaviours.md is not current: run "pnpm behaviours"')

for (const problem of problems) console.error(problem)
const done = [...tested.keys()].filter((number) => number <= 204)
console.log(`${done.length} behaviours tested, ${Object.keys(reasons).length} do not apply`)
process.exit(problems.length === 0 ? 0 : 1)
