// What Redisson's own tests verify of its locks, semaphores and latches, and where it is verified here: writes
// docs/behaviours.md, or with --check fails where that is not current. Either way it fails when a behaviour has neither a test,
// that is one whose title begins with its number, nor a reason why it does not apply.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const page = join(root, "docs/behaviours.md")

const groupLocks =
  "locks of many values in one hash are not offered: a multi-lock over ordinary names does the same, and is seen by others"

// Why a behaviour has no test of its own.
const reasons = {
  28: "there are no topics here; locks during a failover are tested with the cluster and Sentinel",
  35: "there are no listeners here; 27 shows that keyspace events tell everybody who wants to know",
  182: "every acquisition is asynchronous: it is 178 and 180",
  ...Object.fromEntries(Array.from({ length: 13 }, (_, i) => [139 + i, groupLocks]))
}

const sections = [
  [
    "Plain lock",
    1,
    `acquire and release, twice
isLocked around a hold
isLocked as another thread sees it
held by the current thread, around a hold
not held by another thread of the same client
hold count around two nested holds
trying is re-entrant, and refused to others until the last release
only the holder can release
force release
an explicit lease ends, and a waiter gets the lock
releasing after the lease fails
remaining time of an explicit lease, after a release, and of the watchdog's lease
releasing inner holds keeps the explicit lease
a limited wait ends in time
an uninterruptible wait goes on when interrupted
a dead client's lock becomes free
interrupting an attempt leaves no lock that is renewed
a server that is down is an error, not a hang
under contention the watchdog always knows what is held
15 tasks of one client
16 clients of 100 sections
100 clients of one section
5000 tasks with few subscriptions, and no channel left
four timed attempts at once on two names
in a cluster: acquire, look, release
in a cluster: 30 rounds of trying
keyspace events tell of expiry and release
locks beside topics that come and go during a failover
many threads over many names
the same with waits of a few milliseconds
a lock named after an entry of a map
an explicit owner holds, and holds no more after its release
another explicit owner follows, seen through another handle
a multi-lock through other façades locks its members
listeners through other façades`
  ],
  [
    "Renewal",
    36,
    `plain lock: the release fails after the server lost its state
plain lock: the next hold is renewed as usual
both for a read lock
both for a write lock, and for a third hold
nested holds of one thread do not hide the next thread's hold from renewal
a read that has ended is not renewed
nested reads that have ended are not renewed`
  ],
  [
    "Subscriptions",
    43,
    `a subscription that comes about as its waiter times out spoils nothing
a failed subscription keeps nobody else from subscribing
one message reaches every listener`
  ],
  [
    "Spin lock",
    46,
    `acquire and release, twice
isLocked, from either thread
held by the current thread, or another
hold count
re-entrancy
only the holder can release
force release
a lease ends and hands over; the late release fails
a limited wait ends in time
an interrupted wait does not acquire
a dead client's lock becomes free
a server that is down is an error
in a cluster, with replicas
an acquisition is pending while held, and completes after the release
the same with a limited wait
a limited wait in vain
asking once, held and free
concurrency of tasks and clients
exponential backoff
constant backoff`
  ],
  [
    "Non-reentrant locks",
    66,
    `a contender waits and follows
asking again fails, however
after that one release frees
across two handles
all of it for the fair variant`
  ],
  [
    "Fenced lock",
    71,
    `tokens 1 and 2
every grant consumes a token`
  ],
  [
    "Fair lock",
    73,
    `threads that never release hand over by lease, in order
many threads get it in the order of asking
500 at once all complete
acquire and release, twice
isLocked, from either thread
held by the current thread, or another
hold count
re-entrancy
only the holder can release
force release
a lease ends and hands over; a late release
a dead client's lock becomes free
a limited wait ends in time
concurrency of tasks and clients
a waiter that gave up delays nobody
nor does it free the holder's lock
a name mapper applies to the queue
what each place in the queue is worth
a waiter that gives up moves up those behind
a release serves the first at once
the one that is served takes its time off the others
asking again changes no place
asking once takes no place
waiters that never come back are passed over
waits in vain do not add up
nor with grants in between
nor behind a dead waiter
a server that does not answer leaves nobody in the queue`
  ],
  [
    "Read-write lock",
    101,
    `a writer blocks readers until its last release
writing is re-entrant
a writer may read, and then only reads
nobody else reads meanwhile
after the last read it may write again
readers share and block writers, themselves included
force release of what nobody reads
the read side is locked while anybody reads
write, read, end reading, end writing
all readers behind a writer are woken
the read side is not locked by a writer alone
force release frees its own side only
in a cluster
a name with braces
a writer waits for the longest read, no longer
a nested read that has ended
a reader that is gone keeps writers out for its own lease
a writer that is gone keeps readers out for its lease
a shorter lease on re-entry does not shorten the first
a short read lease delays no other reader
a write lease ends and hands over; the late release fails
write and read are both renewed, also after the downgrade
50 readers that outlast the watchdog's lease
a dead writer's lock becomes free
a dead reader is not kept alive by others' renewals
the same with 20 dead clients, quickly
hold counts of both sides
isLocked of the read side
held by the current thread, or another
acquire and release, twice
only the reader can release
reading is re-entrant
readers and writers at random`
  ],
  [
    "Multi-lock",
    134,
    `over three names: held while locked
held as an owner's id sees it
ten threads that ask once: one succeeds
a second thread waits
members on three servers`
  ],
  [
    "Group multi-lock",
    139,
    `owner and count per value
re-entrancy
force release
renewal
asking once
a limited wait behind a lease
held and locked
the basic contract
leases, and dead clients
interruption
server down, and cluster
few subscriptions
concurrency`
  ],
  [
    "Semaphore",
    152,
    `permits are set once
permits with an expiry
acquire and release count
a release creates the permits
releases before any permits were set
zero permits
permits added
permits taken away, below zero
drain
release if it exists
a blocking acquire
a blocking acquire of several
trying for several
a waiter for several is woken when there are enough
mutual exclusion with one permit
very many permits`
  ],
  [
    "Permit semaphore",
    168,
    `none available where there is none
permits are set once
ids of 32 characters
available permits, also after expiry
acquired permits
the total stays
expiry of the whole
a waiter behind a lease; the late release fails
setting the total
adding, also below zero
a blocking acquire waits for a certain release
trying, at once and timed
several in one call
trying for several
acquiring completes promptly
releasing an unknown id fails
trying to release an expired one
releasing a list in parts
how many of a list were released
a batch that has expired is recovered
trying to release expired ones changes nothing
releasing a list is all or nothing
updating a lease
reading a lease
two threads that each need all
one and two of two
mutual exclusion with one permit
in a cluster, with a prefix`
  ],
  [
    "Count-down latch",
    196,
    `no latch: zero
the count is set once
counting down to zero and no further
waiting for a latch that was never set
a timed wait that is in time
a timed wait that is not
five waits at once
as many waiters as count-downs
delete`
  ]
]

const walk = (directory) =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return /^(node_modules|dist.*)$/.test(entry.name) ? [] : walk(path)
    return entry.name.endsWith(".test.ts") ? [path] : []
  })

const tested = new Map()
for (const path of walk(join(root, "test")).toSorted()) {
  for (const [, number] of readFileSync(path, "utf8").matchAll(/(?<=["'`])(\d+)\. (?=\S)/g)) {
    tested.set(Number(number), (tested.get(Number(number)) ?? new Set()).add(relative(root, path)))
  }
}

const problems = []
const where = (number) => {
  const files = [...(tested.get(number) ?? [])].map((path) => `[${path}](../${path})`)
  if (files.length > 0) return files.join(", ")
  if (reasons[number] !== undefined) return `not: ${reasons[number]}`
  problems.push(`behaviour ${number} has neither a test nor a reason`)
  return ""
}

const lines = [
  "# What Redisson's tests verify, and where it is verified here",
  "",
  "Redisson's own tests verify 204 behaviours of its locks, semaphores and latches. A test here that covers one has its number at",
  "the beginning of its title; the head of its file says what differs, and how leases and waits were shortened. This page is",
  "written by `pnpm behaviours`, and the gate checks that it is complete and current."
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
