/**
 * What the library may warn of in whole folders and files of tests, where a test cannot say by `expectWarning` that it must:
 * because it depends on the moment or on the store, or because the tests are about something else.
 */
interface ExpectedWarning {
  /** What the path of the test file begins with. */
  readonly files: string
  readonly messages: ReadonlyArray<RegExp>
  readonly reason: string
}

const notReleased = /^Could not release in time; the lock frees itself when its lease ends\./
const lostAtTheEnd = /^The lock's scope has closed, but its release went wrong\./
const lostInASection = /^The lock's release went wrong after its section had failed\./
const otherSize = /^The semaphore already exists with \d+ permits/
const noSignals = /^No wake-up signals/
const refused = /^Could not connect to Redis; trying again\./
const disconnected = /^Lost the connection to Redis; connecting again\./

export const expectedWarnings: ReadonlyArray<ExpectedWarning> = [
  {
    files: "",
    messages: [/^A fiber woken by the test clock is still running without suspending/],
    reason: "Effect's TestClock warns after a second of real time, in which a busy machine may get nowhere"
  },
  { files: "faults/", messages: [/./], reason: "servers, connections and processes fail, at moments that differ" },
  { files: "servers/", messages: [/./], reason: "servers and connections fail, at moments that differ" },
  {
    files: "contract/",
    messages: [lostAtTheEnd, lostInASection],
    reason:
      "leases end and locks are released by force, which some stores and kinds see at the release and others earlier"
  },
  {
    files: "unit/contractOnQuorum.test.ts",
    messages: [lostAtTheEnd, lostInASection, notReleased],
    reason: "the same tests on a quorum, which cannot release what is of another type"
  },
  {
    files: "compose/tokens.test.ts",
    messages: [notReleased],
    reason: "random members are gone while locks are released"
  },
  {
    files: "compose/coordination.test.ts",
    messages: [noSignals],
    reason: "one server after the other is down, perhaps at the moment in which a waiter subscribes"
  },
  { files: "contract/semaphores.test.ts", messages: [otherSize], reason: "tests that make one of another size" },
  {
    files: "redisson/",
    messages: [lostAtTheEnd, noSignals, refused],
    reason: "leases end, as Redisson's tests want it, subscriptions fail, and servers that are killed may still be down"
  },
  { files: "runnerStorage/", messages: [disconnected, refused], reason: "servers are killed and restarted" },
  { files: "integration/connections.test.ts", messages: [/^Redis has replicas/], reason: "sentinels watch a replica" },
  { files: "integration/urls.test.ts", messages: [refused], reason: "one of the servers is killed" },
  { files: "interop/redLock.test.ts", messages: [disconnected, refused], reason: "one of the servers is killed" }
]
