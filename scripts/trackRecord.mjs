// Shows that the tests named in docs/track-record.md still notice the defects on that page. `pnpm track-record <name>...` runs the
// tests of these rows, which must pass, then takes each row's fix out and runs its test again, which must now fail;
// `pnpm track-record` does so for all rows. The sources are restored afterwards, also after Ctrl-C or SIGTERM. With --check it only
// checks that every fix and every test is where the page says.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const internal = "packages/core/src/internal"

/** The fix of each row: the text in the sources, and what stands there without it. */
const fixes = {
  "large-hashes": {
    file: "lua/lock/look.lua",
    fixed: "redis.call('HLEN', KEYS[1]) > 100",
    broken: "false"
  },
  "beside-other-timeouts": {
    file: "lua/lock/look.lua",
    fixed: "redis.call('TYPE', KEYS[5]).ok == 'zset'",
    broken: "true"
  },
  "beside-other-hashes": {
    file: `${internal}/locks/looking.ts`,
    fixed: "(each) => client.store.slot(each)",
    broken: "() => 0"
  },
  "quorum-of-quorums": {
    file: `${internal}/store/quorum/votes.ts`,
    fixed: "else if (outcome.value.isPartial) unknown++",
    broken: ""
  },
  "ended-in-total": {
    file: "lua/permit_semaphore/acquire.lua",
    fixed: "redis.call('ZCARD', KEYS[2]) + kept",
    broken: "redis.call('ZCARD', KEYS[2]) - ended + kept"
  },
  "ended-at-once": {
    file: "lua/include/permits/reap.lua",
    fixed: "math.max(1000, #ARGV)",
    broken: "1000"
  },
  "ids-of-closed": {
    file: `${internal}/store/operations/permitSemaphore.ts`,
    fixed: 'operation("permit_semaphore/try_release", { reply',
    broken: 'operation("permit_semaphore/try_release", { givesBack: "client", reply'
  },
  "braces-of-members": {
    file: `${internal}/quorum/quorumClient.ts`,
    fixed: ": { name, stem: `{${name}}` }",
    broken: ": { name }"
  },
  "fair-heard-at-once": {
    file: `${internal}/acquire/waitInFairQueue.ts`,
    fixed: "if (client.subscriptions.messagesSeen(channel) !== messagesSeen)",
    broken: "if (spare !== undefined && client.subscriptions.messagesSeen(channel) !== messagesSeen)"
  },
  "woken-before-asleep": {
    file: `${internal}/wait/Line.ts`,
    fixed: "this.hasTurn || this.count === 0 || this.isLate || isReady()",
    broken: "this.hasTurn || this.count === 0 || this.isLate"
  },
  "permits-verified": {
    file: `${internal}/hold/Tracking.ts`,
    fixed: "size + sizeOf(lease)",
    broken: "size + 1"
  },
  "permits-renewed": {
    file: `${internal}/hold/Watchdog.ts`,
    fixed: "sizeOfOne = sizeOf",
    broken: "sizeOfOne = (_: Lease) => 1"
  },
  "warned-twice": {
    file: `${internal}/hold/rollback.ts`,
    fixed: "if (reply === undefined && client.now() >= lastEffectAt) return",
    broken: ""
  },
  "refused-rollback": {
    file: `${internal}/hold/rollback.ts`,
    fixed: "giveBack(reply === undefined)",
    broken: "giveBack(false)"
  },
  "leave-behind-grant": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "return Exit.isSuccess(exit) ? Effect.void : left",
    broken: "return Exit.isSuccess(exit) ? Effect.sync(() => void client.background(left)) : left"
  },
  "read-prolonged-in-vain": {
    file: `${internal}/hold/release.ts`,
    fixed: "retryRelease(client, releasing(lease), lease)",
    broken: "retryRelease(client, releasing(lease), { overAt: lease.overAt })"
  },
  "quorum-of-the-closed": {
    file: `${internal}/quorum/quorumClient.ts`,
    fixed: "return Scope.close(scope, Exit.void)",
    broken: "return Effect.void"
  },
  "grant-behind-leave": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "return Exit.isSuccess(exit) ? Effect.void : left",
    broken: "return left"
  },
  "place-behind-a-grant": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "wants.ifGranted.permits === 0 && line.mayHavePlace === mayHavePlace",
    broken: "wants.ifGranted.permits === 0 && mayHavePlace > 0"
  },
  "behind-a-spinner": {
    file: `${internal}/wait/Line.ts`,
    fixed: "this.#patient > 0 ? Math.min(until, this.pauseUntil(-1)) : until",
    broken: "until"
  },
  "place-behind-the-served": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "wants.ifDenied.permits > 0 && mayHaveRun(cause)",
    broken: 'wants.ifDenied.permits > 0 && mayHaveRun(cause) && client.lines.get(keys.lock, "permit") === undefined'
  },
  "leave-ahead-of-request": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "wants.ifDenied.permits > 0 && mayHaveRun(cause)",
    broken: "wants.ifDenied.permits < 0"
  },
  "full-server-confirmation": {
    file: "lua/grant/confirm.lua",
    fixed: "redis.pcall('HDEL', KEYS[1], '')",
    broken: ""
  },
  "refused-confirmation": {
    file: `${internal}/store/acknowledgements.ts`,
    fixed: "reason, mayHaveRun: isGranted, cause",
    broken: 'reason: isGranted ? "ConnectionLost" : reason, cause'
  },
  "creator-in-line": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "initial: waiter.initial ?? (line.denial?.exists === true ? undefined : line.initial),",
    broken: "initial: waiter.initial,"
  },
  "doctor-on-terminal": {
    file: "packages/cli/src/doctor/doctor.ts",
    fixed: "of: ({ message }) => inert(message)",
    broken: "of: ({ message }) => message"
  },
  "not-again": {
    file: `${internal}/report/storeReasons.ts`,
    fixed: "the command was not sent",
    broken: "the command was not sent. Try again shortly"
  },
  "kept-not-renewed": {
    file: "packages/core/src/LockError.ts",
    fixed: '(this.holder.owner.endsWith(kept) ? "" : ", longer if it is renewed")',
    broken: '", longer if it is renewed"'
  },
  "doctor-ends": {
    file: "packages/cli/src/doctor/permissions.ts",
    fixed: "Lock.scoped(held, options)",
    broken: 'Lock.scoped(held, { leaseTime: "8 seconds" })'
  },
  "asked-of-acl": {
    file: "packages/cli/src/doctor/commandProbe.ts",
    fixed: " and not forAll[string.match(reply.err, '%u+')]",
    broken: ""
  },
  "sentinel-in-doctor": {
    file: "packages/cli/src/doctor/doctor.ts",
    fixed: "/unknown command\\W+eval/i",
    broken: "/^never/"
  },
  "free-ones": {
    file: "packages/cli/src/run/run.ts",
    fixed: 'state.kind === "none" && isOneOfSeveral',
    broken: 'state.kind === "none" && !isOneOfSeveral'
  },
  "cut-question": {
    file: "packages/cli/src/watch/watchView.ts",
    fixed: "`[y/N] Free ${quoted(asked!.name)}? ${whoWorksOn(asked!)}`",
    broken: "`Free ${quoted(asked!.name)}? ${whoWorksOn(asked!)} [y/N]`"
  },
  "nothing-to-do": {
    file: "packages/cli/src/logger.ts",
    fixed: 'event === "lost" || logLevel === "Info"',
    broken: 'event === "lost" || event === "restored"'
  },
  "owner-of-name": {
    file: "packages/cli/src/run/hold.ts",
    fixed: 'holding.owner.split(", ", 1)[0]',
    broken: "holding.owner"
  },
  "ended-terms": {
    file: "packages/core/src/LeaderElection.ts",
    fixed: "...terms.filter(({ isOver }) => !isOver)]",
    broken: "...terms]"
  },
  "failed-look": {
    file: `${internal}/coordination/record.ts`,
    fixed: "Schedule.min([reconnecting, Schedule.spaced(this.#intervalMillis)])",
    broken: "Schedule.spaced(this.#intervalMillis)"
  },
  "late-tick": {
    file: `${internal}/coordination/schedule.ts`,
    fixed: 'growing("20 millis", "1 second")',
    broken: 'growing("20 millis", "1 day")'
  },
  "full-stderr": {
    file: "packages/cli/src/say.ts",
    fixed: "written = written.then(() => new Promise((resolve) => write(2, line, () => resolve())))",
    broken: 'void [write, process.getBuiltinModule("node:fs").writeSync(2, line)]'
  },
  "started-late": {
    file: "packages/cli/src/run/run.ts",
    fixed: 'Effect.catchTag(holding.ensureHeld, "LockLost",',
    broken: 'Effect.catchTag(Effect.void, "LockLost",'
  },
  "prolonged-lease": {
    file: `${internal}/hold/Lease.ts`,
    fixed: "this.heldUntil = Math.max(this.heldUntil, this.deadline)",
    broken: "void this.deadline"
  },
  "freed-while-asking": {
    file: `${internal}/hold/Hold.ts`,
    fixed: `    // until the answer it counts, so that no release comes before
    return Effect.matchCauseEffect(checkHeld(lease), {`,
    broken: `    lease.remove(this)
    return Effect.matchCauseEffect(checkHeld(lease), {`
  },
  "loss-after-the-end": {
    file: `${internal}/hold/Hold.ts`,
    fixed: "(lease.checkLost() === undefined ? this.#end(since) : Effect.ignore(this.#end(since)))",
    broken: "this.#end(since, lease.checkLost())"
  },
  "silent-check": {
    file: `${internal}/hold/release.ts`,
    fixed: `if (failure.reason === "TimedOut" && !isQuorum)`,
    broken: `if (failure.reason === "Closed" && !isQuorum)`
  },
  "prolonged-read": {
    file: `${internal}/hold/Lease.ts`,
    fixed: "    this.writer?.asksFor(leaseMillis, sentAt)\n",
    broken: ""
  },
  "impatient-interruption": {
    file: `${internal}/locks/MultiAcquire.ts`,
    fixed: "return Effect.forkDetach(this.#giveBack(), { startImmediately: true })",
    broken: "return Effect.uninterruptible(this.#giveBack())"
  },
  "lost-sections-around": {
    file: `${internal}/hold/Lease.ts`,
    fixed: "(lease.lost === undefined || kept.some((inner) => isSameLock(inner.lease, lease)))",
    broken: "lease.lost === undefined"
  },
  "waiting-writer-as-holder": {
    file: `${internal}/acquire/untilServed.ts`,
    fixed: 'if (!denial.owner.includes(":")) return undefined',
    broken: 'if (denial.owner === "") return undefined'
  },
  "unlisted-master": {
    file: "packages/ioredis/src/internal/clusterDriver.ts",
    fixed: "Stream.fail(nodes.ended ?? nodes.noneFor(`the slots of ${address}`))",
    broken: "Stream.empty"
  },
  "untold-by-a-master": {
    file: "packages/ioredis/src/internal/clusterDriver.ts",
    fixed: "Array.from(nodes.masters, invalidationsAt)",
    broken: "[...nodes.masters].filter((server) => nodes.at(server) !== undefined).map(invalidationsAt)"
  },
  "silent-master": {
    file: "packages/ioredis/src/internal/connection/connecting.ts",
    fixed: `Promise.any(cluster.nodes("master").map(ask))`,
    broken: `Promise.any(cluster.nodes("master").slice(0, 1).map(ask))`
  },
  "other-addresses": {
    file: "packages/ioredis/src/internal/connection/ClusterNodes.ts",
    fixed: "this.options.isOurs ? this.#onRefreshEnd : undefined",
    broken: "undefined"
  },
  "host-down": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: "EHOST(UNREACH|DOWN)",
    broken: "EHOSTUNREACH"
  },
  "refused-label": {
    file: "packages/core/src/internal/client/Presence.ts",
    fixed: "isFinal(stored.failure)",
    broken: "!stored.failure.isTransient"
  },
  "moved-channel": {
    file: "packages/ioredis/src/internal/subscriber.ts",
    fixed: `const link = this.#links.get(channel.server ?? "")`,
    broken: 'const link = channel.state === "none" ? undefined : channel.link'
  },
  "given-up-ping": {
    file: "packages/ioredis/src/internal/command/CommandWriter.ts",
    fixed: `if (error.name === "ReplyError") this.answered()`,
    broken: "this.answered()"
  },
  "slot-on-the-move": {
    file: "packages/ioredis/src/internal/command/ClusterScriptCommand.ts",
    fixed: `this.#redirections = 0
      if`,
    broken: "if"
  },
  "many-over-one-cluster": {
    file: "packages/ioredis/src/internal/connection/ClusterNodes.ts",
    fixed: "allowListeners(cluster, LISTENERS)",
    broken: "allowListeners(cluster, 0)"
  },
  "many-while-connecting": {
    file: "packages/ioredis/src/internal/connection/Connection.ts",
    fixed: "allowListeners(socket, 1)",
    broken: "allowListeners(socket, 0)"
  },
  "given-up-while-opening": {
    file: "packages/ioredis/src/internal/connection/Connection.ts",
    fixed: `this.#hasClosed = true
    if (this.isOurs)`,
    broken: "if (this.isOurs)"
  },
  "ended-before-confirmed": {
    file: "packages/ioredis/src/internal/clusterDriver.ts",
    fixed: "nodes.ended ?? nodes.ownerOf(slot)",
    broken: "nodes.ownerOf(slot)"
  },
  "moved-before-confirmed": {
    file: "packages/ioredis/src/internal/connection/BlockingConnections.ts",
    fixed: "return refusalOf(connection.failureOf(error))",
    broken: "return connection.failureOf(error) ?? refusalOf(error)"
  },
  "given-up-while-connecting": {
    file: "packages/ioredis/src/internal/connection/connecting.ts",
    fixed: 'signal.addEventListener("abort", close)',
    broken: "void signal"
  },
  "reconnected-without-a-command": {
    file: "packages/ioredis/src/internal/connection/ClusterNodes.ts",
    fixed: "redis.connect()",
    broken: "Promise.resolve()"
  },
  "one-long-subscribe": {
    file: "packages/ioredis/src/internal/subscriber.ts",
    fixed: "Arr.chunksOf(wanted, MOST_CHANNELS)",
    broken: "Arr.chunksOf(wanted, 1_000_000)"
  },
  "unknown-subcommand": {
    file: "packages/ioredis/src/internal/connection/Connection.ts",
    fixed: "/NOPROTO|unknown (sub)?command/i",
    broken: "/NOPROTO|unknown command/i"
  },
  "long-interval-of-a-writer": {
    file: `${internal}/options/ClientOptions.ts`,
    fixed: "writer: 3000,",
    broken: "writer: 30_000,"
  },
  "long-interval-of-a-place": {
    file: `${internal}/options/ClientOptions.ts`,
    fixed: "others: 30_000 })",
    broken: "others: Number.POSITIVE_INFINITY })"
  },
  "refused-reports": {
    file: `${internal}/wait/FairQueue.ts`,
    fixed: "if (!isRefused(cause)) this.removePlaces(gone)",
    broken: "this.removePlaces(gone)"
  },
  "lease-of-a-queue": {
    file: "lua/fair_lock/refresh.lua",
    fixed: "if left >= 0 and left < 43200000 then",
    broken: "if left == 0 then"
  },
  "token-in-the-tab": {
    file: "packages/cli/src/ui/page/main.ts",
    fixed: `  takeTokenFromAddress()
  route()`,
    broken: "  route()"
  },
  "wrong-token": {
    file: "packages/cli/src/ui/page/connection/session.ts",
    fixed: "sessionStorage.getItem(stored) !== null\n",
    broken: "false\n"
  },
  "more-than-a-thousand": {
    file: "packages/cli/src/names/release.ts",
    fixed: "if (unlisted(state) > 0) {",
    broken: "if (unlisted(state) < 0) {"
  },
  "slow-confirmation": {
    file: "packages/cli/src/run/lossWarning.ts",
    fixed: "Math.min(graceMillis, longest / 3)",
    broken: "graceMillis"
  },
  "notes-of-freed": {
    file: "lua/include/hand_over/hand_over_sides.lua",
    fixed: "--@include readers/forget_freed",
    broken: "if not is_read then redis.call('DEL', KEYS[4]) end"
  },
  "overflowing-permit": {
    file: "lua/include/permits/reap.lua",
    fixed: "local endless = redis.call('ZCOUNT', KEYS[2], '-inf', '(0')",
    broken: "local endless = 0"
  },
  "full-server-fair": {
    file: "lua/fair_lock/refresh.lua",
    fixed: "redis.call('ZREM', KEYS[5], '')",
    broken: ""
  },
  "long-dead-queue": {
    file: "lua/include/fair/keep_clients.lua",
    fixed: "math.max(86400000, 2 * waiter_timeout * redis.call('ZCARD', KEYS[4]))",
    broken: "math.max(86400000, waiter_timeout)"
  },
  "granted-by-nobody": {
    file: "packages/core/src/LockError.ts",
    fixed: 'this.acquired === 0 ? "too few agreed" : `${this.acquired} granted it`',
    broken: "`${this.acquired} granted it`"
  },
  "zone-of-process": {
    file: "packages/core/src/DistributedCron.ts",
    fixed: "Option.isSome(cron.tz) ? cron : Cron.make({",
    broken: "Option.isOption(cron.tz) ? cron : Cron.make({"
  },
  "late-ticks-wait": {
    file: `${internal}/coordination/schedule.ts`,
    fixed: 'overlap === "wait" && hasBegun',
    broken: 'overlap === "wait" && hasBegun !== undefined'
  },
  "unexpected-reply": {
    file: `${internal}/store/commands.ts`,
    fixed: 'return Exit.fail(this.#failure({ reason: "Failed", cause }))',
    broken: "throw cause"
  },
  "cluster-in-use": {
    file: "packages/ioredis/src/internal/command/CommandWriter.ts",
    fixed: "this.server = this.#nextName()\n    this.send",
    broken: 'this.server = ""\n    this.send'
  },
  "moved-application": {
    file: "packages/ioredis/src/internal/applicationClient.ts",
    fixed: "Number((prevCondition ?? condition)?.select ?? client.options.db ?? 0)",
    broken: "Number(client.options.db ?? (prevCondition ?? condition)?.select ?? 0)"
  },
  "untold-database": {
    file: "packages/ioredis/src/internal/applicationClient.ts",
    fixed: "(actual === undefined && database === 0)",
    broken: "actual === undefined"
  },
  "reconnecting-application": {
    file: "packages/ioredis/src/internal/applicationClient.ts",
    fixed: "connection.database = yield* within",
    broken: 'if (client.status === "ready") connection.database = yield* within'
  },
  "busy-when-asked": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: 'failure.reason === "Busy" && id === undefined',
    broken: 'failure.reason === "Busy" && id !== undefined'
  },
  "no-timeout-at-all": {
    file: "packages/ioredis/src/internal/command/ScriptCommand.ts",
    fixed: "ownMillis ?? timeoutMillis",
    broken: "(ownMillis === undefined ? timeoutMillis : ownMillis) as number"
  },
  "idle-for-long": {
    file: "packages/ioredis/src/internal/connection/BlockingConnections.ts",
    fixed: "idleMillis < 2 * origin.timeoutMillis",
    broken: "idleMillis < 1000 * origin.timeoutMillis"
  },
  "added-again": {
    file: "packages/ioredis/src/internal/connection/ClusterNodes.ts",
    fixed: "former?.writer.close()",
    broken: ""
  },
  "removed-expiry": {
    file: "lua/include/extend.lua",
    fixed: "if redis.call('PTTL', key) < tonumber(lease) then",
    broken: "if false then"
  },
  "tokens-after-none": {
    file: "lua/fair_lock/acquire.lua",
    fixed: `    local token, foreseen = next_token(KEYS[1], KEYS[2], ARGV[3])
    if not token then
      return foreseen
    end
    local left`,
    broken: `    local token, foreseen = tonumber(redis.call('GET', KEYS[2]) or 1), 0
    local left`
  },
  "places-given-up": {
    file: "lua/include/fair/give_up.lua",
    fixed: "redis.call('ZADD', KEYS[4], due - added, waiter)",
    broken: "local _ = added"
  },
  "first-member-closed": {
    file: `${internal}/quorum/quorumClient.ts`,
    fixed: "members.find(({ client }) => !client.isClosing)",
    broken: "members.find(() => true)"
  },
  "list-of-closed": {
    file: `${internal}/locks/looking.ts`,
    fixed: "if (client.isClosing) return Stream.fail(",
    broken: 'if (client.clientId === "") return Stream.fail('
  },
  "each-node-alone": {
    file: "packages/ioredis/src/internal/clusterDriver.ts",
    fixed: "if (node === nodes.at(server)?.client) onReady()",
    broken: "if (node.status !== undefined) onReady()"
  },
  "prevented-yield": {
    file: `${internal}/acquire/sections.ts`,
    fixed: "preventYield ? Context.add(context, PreventSchedulerYield, false) : context",
    broken: "context"
  },
  "short-lease-confirmed": {
    file: `${internal}/store/operations/StoreOperation.ts`,
    fixed: "? longestHandOverMillis + 1 : 0",
    broken: "? 0 : 0"
  },
  "late-release-left": {
    file: `${internal}/wait/Lines.ts`,
    fixed: "if (line.isEmpty) void giveBackPlace(place)",
    broken: "if (line.isEmpty) return"
  },
  "short-lease-after-failover": {
    file: `${internal}/hold/Watchdog.ts`,
    fixed: `    this.verify(leases.filter(({ kind }) => kind.mode === "permit"))
    this.verifyLength(leases.filter(({ kind }) => kind.mode !== "permit"))`,
    broken: "    this.verify(leases)"
  },
  "own-turns": {
    file: `${internal}/wait/Lines.ts`,
    fixed: 'tell: readersAsk ? "" : place.owner',
    broken: 'tell: ""'
  },
  "queued-script": {
    file: "packages/core/src/internal/store/commands.ts",
    fixed: 'if (exit.value === "QUEUED")',
    broken: "if (exit.value === undefined)"
  },
  "master-is-down": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: "\\bREADONLY\\b|\\bMASTERDOWN\\b",
    broken: "\\bREADONLY\\b"
  },
  "unreachable-meanwhile": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: '[/\\b(read|write) E(HOST|NET)(UNREACH|DOWN)\\b/, "ConnectionLost"],',
    broken: ""
  },
  "errors-of-bun": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: "ERR_REDIS_CONNECTION_CLOSED|",
    broken: ""
  },
  "many-drivers": {
    file: "packages/ioredis/src/internal/connection/Connection.ts",
    fixed: "if (!isOurs) allowListeners(client, LISTENERS)",
    broken: ""
  },
  "reconnects-always": {
    file: "packages/ioredis/src/internal/options/checks.ts",
    fixed: "[true, 1, 2].includes(",
    broken: "[].includes("
  },
  "database-of-the-client": {
    file: "packages/ioredis/src/internal/connection/BlockingConnections.ts",
    fixed: "...given({ db: database }), ",
    broken: ""
  },
  "selected-another-database": {
    file: "packages/ioredis/src/internal/connection/Connection.ts",
    fixed: "this.#selected = database",
    broken: "void database"
  },
  "lazy-cluster": {
    file: "packages/ioredis/src/internal/connection/connecting.ts",
    fixed: "Promise.race([ready(cluster, signal), ...(",
    broken: "Promise.race([...("
  },
  "closed-quorum-known": {
    file: `${internal}/locks/RedLockImpl.ts`,
    fixed: "this.#isBound && this.at?.client.isClosing === false",
    broken: "this.#isBound && this.at !== undefined"
  },
  "closed-subscriber": {
    file: "packages/ioredis/src/internal/subscriber.ts",
    fixed: "if (this.#isClosed) return { cancel: () => {} }",
    broken: "void this.#isClosed"
  },
  "endless-listing": {
    file: "packages/ioredis/src/internal/command/scan.ts",
    fixed: "if (!Array.isArray(reply)) throw RedisDriver.inTransaction",
    broken: ""
  },
  "listing-through-effect": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: 'if (reply === "QUEUED") return Effect.fail(inTransaction)\n',
    broken: ""
  },
  "tls-of-a-socket": {
    file: "packages/ioredis/src/internal/ownDriver.ts",
    fixed: 'isSocket ? ""',
    broken: 'isSocket === undefined ? ""'
  },
  "stopped-not-refused": {
    file: "packages/cli/src/run/lossWarning.ts",
    fixed: "Option.isSome(failure)",
    broken: "Option.isOption(failure)"
  },
  "application-tracks": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: "if (!isFree) return fail(takenByApplication)",
    broken: ""
  },
  "drivers-over-one-client": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: "if (reports === undefined) return",
    broken: "return"
  },
  "application-s-timeout": {
    file: "packages/ioredis/src/internal/connection/Connection.ts",
    fixed: "here\n  commandTimeout: undefined",
    broken: "here\n  commandTimeout: 200 as never"
  },
  "slow-look": {
    file: `${internal}/locks/looking.ts`,
    fixed: "ends: endsOf(state, startedAt)",
    broken: "ends: endsOf(state, client.now())"
  },
  "tracking-answered-late": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: "target !== -1 && target !== id && !redirects.get(redis)?.some(({ id }) => id === Number(target))",
    broken: "target !== -1 && id !== -1"
  },
  "unanswered-is-free": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: "return -1\n    throw error",
    broken: "return -1\n    return -1"
  },
  "queued-tracking": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: 'if (reply === "QUEUED") throw RedisDriver.inTransaction',
    broken: ""
  },
  "reports-of-the-dead": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: "if (isOver || id === undefined ||",
    broken: "if (id === undefined ||"
  },
  "false-subscribed": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: 'if (messages.state._tag === "Done") return yield* next\n',
    broken: ""
  },
  "slots-of-the-first": {
    file: `${internal}/store/quorum/QuorumStore.ts`,
    fixed: 'members.find(({ client: { store } }) => store.slot("a") !== store.slot("b")) ?? first',
    broken: "first"
  },
  "release-in-parts": {
    file: `${internal}/store/quorum/votes.ts`,
    fixed: "isDenied && member.client.hasGivenBack(commandAt(member, release)) ?",
    broken: "isDenied && members.every(({ client }) => client.hasGivenBack(release)) ?"
  },
  "overwritten-majority": {
    file: `${internal}/hold/release.ts`,
    fixed: 'mayHaveRun(failed) && Option.getOrUndefined(Cause.findErrorOption(failed))?.reason !== "WrongType"',
    broken: "mayHaveRun(failed) && Option.isSome(Cause.findErrorOption(failed))"
  },
  "notes-by-count": {
    file: `${internal}/client/RecentReleases.ts`,
    fixed: "const until = now + spanMillis",
    broken: "const until = now + 0 * spanMillis"
  },
  "refused-and-unanswered": {
    file: "packages/core/src/PermitId.ts",
    fixed: "client.releases?.withdraw(command)",
    broken: "void command"
  },
  "certain-leftovers": {
    file: `${internal}/store/quorum/stragglers.ts`,
    fixed: "Number(a.mayBeNothing) - Number(b.mayBeNothing) || ",
    broken: ""
  },
  "given-up-unheard": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: ".pipe(Effect.onInterrupt(() => startProbe))",
    broken: ""
  },
  "kept-minority": {
    file: `${internal}/store/quorum/QuorumStore.ts`,
    fixed: "now() - known.since < timeoutMillis",
    broken: "true"
  },
  "late-writers-place": {
    file: `${internal}/store/quorum/stragglers.ts`,
    fixed: "keepingPlace(release.command)",
    broken: "release.command"
  },
  "order-of-members": {
    file: `${internal}/quorum/quorumClient.ts`,
    fixed: "distinct.toSorted()",
    broken: "distinct"
  },
  "release-sent-twice": {
    file: `${internal}/store/operations/StoreOperation.ts`,
    fixed: " ?? (scale.isLast ? Math.max(...replies) : undefined)",
    broken: ""
  },
  "silent-majority": {
    file: `${internal}/store/startable.ts`,
    fixed: "      forget()\n",
    broken: ""
  },
  "quorum-reconnects": {
    file: `${internal}/store/quorum/votes.ts`,
    fixed: "isDenied && member.client.hasGivenBack",
    broken: "!isDenied && member.client.hasGivenBack"
  },
  "masked-loss": {
    file: `${internal}/hold/release.ts`,
    fixed: 'lease.client.hasGivenBack(lease.kind.release(lease, ""))',
    broken: "lease.client.releases !== undefined"
  },
  "placeless-waiters": {
    file: `${internal}/acquire/waitInFairQueue.ts`,
    fixed: "    if (!waiter.mayHavePlace) return Effect.void\n",
    broken: ""
  },
  "failed-but-done": {
    file: "packages/core/src/LockError.ts",
    fixed: 'this.workDone === true ? " (the work is done)"',
    broken: 'this.lock !== "" ? " (the work is done)"'
  },
  "loss-among-others": {
    file: `${internal}/acquire/sections.ts`,
    fixed: "Effect.failCause(Cause.fromReasons(losses))",
    broken: "Effect.failCause(problems)"
  },
  "last-try": {
    file: `${internal}/hold/release.ts`,
    fixed: "mayHaveRun: mayBeReleased || mayHaveRun,",
    broken: "mayHaveRun: mayHaveRun || (mayBeReleased && undefined),"
  },
  "refused-return": {
    file: "packages/core/src/PermitId.ts",
    fixed: "if (Exit.isSuccess(exit) && !exit.value) client.releases?.withdraw(command)\n        else if",
    broken: "if"
  },
  "closed-after-loss": {
    file: `${internal}/hold/release.ts`,
    fixed: "client.background(Effect.ignore(retryRelease(",
    broken: "client.fork(Effect.ignore(retryRelease("
  },
  "overwritten-key": {
    file: `${internal}/hold/release.ts`,
    fixed: '        if (failure.reason === "WrongType") return confirm(-1)\n',
    broken: ""
  },
  "behind-a-refusal": {
    file: "packages/ioredis/src/internal/connection/Connection.ts",
    fixed: 'failed("ConnectionLost", `it was',
    broken: 'failed("ReadOnly", `it was'
  },
  "own-connect-timeout": {
    file: "packages/ioredis/src/internal/options/settings.ts",
    fixed: "ioredis.connectTimeout ?? ",
    broken: ""
  },
  "lost-by-the-failing-store": {
    file: "packages/testing/src/FailingStore.ts",
    fixed: 'carriedOut ? "ConnectionLost" : "NotConnected"',
    broken: '"NotConnected"'
  },
  "idle-at-former-masters": {
    file: "packages/ioredis/src/internal/subscriber.ts",
    fixed: "      closeLink(link)\n",
    broken: ""
  },
  "untold-releases": {
    file: `${internal}/store/quorum/stragglers.ts`,
    fixed: "due.length < atOnce",
    broken: "due.length < atOnce * mostAtOnce"
  },
  "denied-while-down": {
    file: `${internal}/store/quorum/votes.ts`,
    fixed: "if (mayHaveRun(outcome.cause)) unknown++",
    broken: "if (mayHaveRun(outcome.cause) || failed > 0) unknown++"
  },
  "last-denial": {
    file: `${internal}/store/quorum/votes.ts`,
    fixed: "hasMajority ? unknown === 0 :",
    broken: "hasMajority ? unknown < 0 :"
  },
  "unnumbered-place": {
    file: "lua/include/hand_over/hand_over_sides.lua",
    fixed: "if number and hears(",
    broken: "if hears("
  },
  "refused-unread": {
    file: `${internal}/acquire/waitInLine.ts`,
    fixed: "if (place !== undefined && !ask.mayHaveRun) keepPlace(line, place)",
    broken: "if (!ask.mayHaveRun) line.place ??= place"
  },
  "interrupted-look": {
    file: `${internal}/acquire/ask.ts`,
    fixed: "      ask.mayHaveRun = mayHaveRun(cause)\n",
    broken: ""
  },
  "readers-beside-java": {
    file: `${internal}/hold/Tracking.ts`,
    fixed: 'mode === "read" || (hasChanged && mode !== "permit")',
    broken: 'hasChanged && (mode === "exclusive" || mode === "write")'
  },
  "shorter-reentry": {
    file: `${internal}/hold/Lease.ts`,
    fixed: "if (this.unconfirmed !== undefined && leaseMillis >= this.unconfirmed)",
    broken: "if (leaseMillis > 0)"
  },
  "kept-in-turn": {
    file: `${internal}/hold/release.ts`,
    fixed: "client.alarms.set({ due: 0, heapIndex: -1, ring }, time)",
    broken: "void ring"
  },
  "kept-queue": {
    file: "lua/lock/keep.lua",
    fixed: "head and KEYS[2] .. ':' .. head or KEYS[2]",
    broken: "KEYS[2]"
  },
  "ended-for-a-day": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "returned < this.#endsAt ?",
    broken: "returned > 0 ?"
  },
  "late-rollbacks": {
    file: `${internal}/hold/rollback.ts`,
    fixed: "millis - (beganAt - at)",
    broken: "0 * millis - (beganAt - at)"
  },
  "member-joins-late": {
    file: `${internal}/store/quorum/QuorumStore.ts`,
    fixed: "Stream.suspend(() => member.client.store.invalidations ?? Stream.empty)",
    broken: "(member.client.store.invalidations ?? Stream.empty)"
  },
  "charged-twice": {
    file: "packages/core/src/LockError.ts",
    fixed: 'this.workDone !== true && consequences[this.reason].again === "soon"',
    broken: 'consequences[this.reason].again === "soon"'
  },
  "error-after-release": {
    file: `${internal}/hold/release.ts`,
    fixed: "let mayBeReleased = mayHaveReleased(failed)",
    broken: "let mayBeReleased = failure.isOutcomeUnknown"
  },
  "uncounted-refusals": {
    file: `${internal}/store/acknowledgements.ts`,
    fixed: "    this.#onFailure?.(reason)\n",
    broken: ""
  },
  "fair-queue-left": {
    file: `${internal}/wait/FairQueue.ts`,
    fixed: "    if (owners.length === 0) return\n",
    broken: ""
  },
  "newer-waiters-place": {
    file: `${internal}/hold/rollback.ts`,
    fixed: `if (line === undefined) {
        // of a fiber that has joined since, as its first request was denied, the place may be gone
        const changed = Effect.sync(() => lines.get(key, "permit")?.changed())
        return Effect.tap(run(semaphore.leave(key, clientId, store)), changed)
      }`,
    broken: "if (line !== null) return run(semaphore.leave(key, clientId, store))"
  },
  "interrupted-writers-place": {
    file: `${internal}/kinds/kinds.ts`,
    fixed: 'client.lines.get(keys.lock, "write") !== undefined',
    broken: "client.isClosing"
  },
  "repeated-writers-place": {
    file: `${internal}/client/RecentReleases.ts`,
    fixed: "return readWriteLock.keepingPlace(sent)",
    broken: "return sent"
  },
  "repeated-without-token": {
    file: `${internal}/client/RecentReleases.ts`,
    fixed: "leaseMillis, tokenLifeMillis!, ...place",
    broken: "leaseMillis, ...place"
  },
  "done-twice": {
    file: "packages/core/src/LeaderElection.ts",
    fixed: 'exit?._tag !== "Success" && isLossOf',
    broken: "isLossOf"
  },
  "uncounted-permits": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "else client.telemetry.of(kind.name).acquiredForAnybody(now - startedAt)\n",
    broken: ""
  },
  "glob-escapes": {
    file: `${internal}/store/memory/Keyspace.ts`,
    fixed: "[from, to].toSorted()",
    broken: "[from, to]"
  },
  "inner-loss": {
    file: `${internal}/hold/Hold.ts`,
    fixed: "    this.outlived = true\n",
    broken: ""
  },
  "ended-counter": {
    file: "lua/semaphore/acquire.lua",
    fixed: "left_of_counter < life then",
    broken: "left_of_counter < 0 then"
  },
  "newcomers-age": {
    file: "lua/include/permit_places/take_place.lua",
    fixed: "redis.pcall('ZADD', places, digits, me)",
    broken: "redis.pcall('ZADD', places, 'NX', digits, me)"
  },
  "max-hold-fixed": {
    file: `${internal}/client/LockClient.ts`,
    fixed: "(isRenewed ? maxHoldMillis : Math.max(maxHoldMillis, leaseMillis))",
    broken: "(isRenewed ? maxHoldMillis : Math.max(maxHoldMillis, leaseMillis - leaseMillis))"
  },
  "repeated-first": {
    file: `${internal}/hold/release.ts`,
    fixed: '|| lease.client.hasGivenBack(lease.kind.release(lease, ""))',
    broken: ""
  },
  "abandoned-request": {
    file: "lua/include/deadline.lua",
    fixed: "if micros > ARGV[#ARGV] * 1e3 then",
    broken: "if micros < 0 then"
  },
  "early-rollback": {
    file: `${internal}/hold/rollback.ts`,
    fixed: "Math.max(0, lastEffectAt - client.now()) + 1)\n      yield* giveBack(reply === undefined)\n",
    broken: "Math.max(0, lastEffectAt - client.now()) + 1)\n"
  },
  "fair-places-after-a-step": {
    file: "lua/include/fair/skip_the_dead.lua",
    fixed: "if still > 600 or still < 0 then",
    broken: "if still > 600 then"
  },
  "distant-clients": {
    file: "lua/include/turn/begin.lua",
    fixed: "turn_left = micros % 1e7 < since_last and 250000 or micros % 1e6 < since_last and 50000 or 10000",
    broken: "turn_left = 10000"
  },
  "stalled-server": {
    file: "lua/include/fair/skip_the_dead.lua",
    fixed: "if still > 600 or still < 0 then",
    broken: "if still < 0 then"
  },
  "full-server": {
    file: "lua/permit_semaphore/renew.lua",
    fixed: "redis.pcall('ZREM', KEYS[1], '')\n",
    broken: ""
  },
  "memory-clock": {
    file: `${internal}/store/memory/MemoryStore.ts`,
    fixed: "const now = monotonicMillis(clock)\n",
    broken: "const now = monotonicMillis(clock) && (() => clock.currentTimeMillisUnsafe())\n"
  },
  "lone-surrogate": {
    file: `${internal}/store/keys.ts`,
    fixed: "return text.isWellFormed() ?",
    broken: "return true ?"
  },
  "shared-key": {
    file: `${internal}/store/keys.ts`,
    fixed: "const other = wholeTag.exec(key)?.[1]",
    broken: 'const other = wholeTag.exec("")?.[1]'
  },
  "observer-throws": {
    file: `${internal}/client/LockClient.ts`,
    fixed:
      "queueMicrotask(() => {\n      try {\n        task()\n      } catch (defect) {\n        this.#report(defect)\n      }\n    })",
    broken: "task()"
  },
  "reader-token": {
    file: "lua/include/tokens/read_token.lua",
    fixed: "return micros - 1",
    broken: "return 1"
  },
  "two-fibers": {
    file: `${internal}/wait/Lines.ts`,
    fixed: "streak.count >= mostInARow &&",
    broken: "streak.count >= 1e9 * mostInARow &&"
  },
  "own-reads": {
    file: `${internal}/acquire/reenter.ts`,
    fixed: "const own = ownLease(request)",
    broken: 'const own = kind.mode === "read" ? client.leases.find(keys.lock, "read", identity) : ownLease(request)'
  },
  "owner-reads": {
    file: `${internal}/acquire/waitInLine.ts`,
    fixed: "return reenterOr(",
    broken: "return !this.waiter.hasTurn ? this.#askIfDue() : reenterOr("
  },
  "forgotten-record": {
    file: `${internal}/client/LockClient.ts`,
    fixed: "this.releases?.repeat(recordsOf(this.watchdog.leases))",
    broken: "this.releases?.repeat([])"
  },
  "removed-record": {
    file: `${internal}/hold/Watchdog.ts`,
    fixed: "if (records.length > 0) this.#client.fork",
    broken: "if (records.length < 0) this.#client.fork"
  },
  "forgotten-release": {
    file: `${internal}/client/RecentReleases.ts`,
    fixed: "this.#sent.push(new Sent(command, now))",
    broken: "void new Sent(command, now)"
  },
  "slow-shutdown": {
    file: `${internal}/hold/ReleaseTime.ts`,
    fixed: "if (passed < releaseTimeoutMillis) return passed",
    broken: "if (passed < 0) return passed"
  },
  "after-silence": {
    file: `${internal}/hold/ReleaseTime.ts`,
    fixed: "this.#silent.delete(slot)",
    broken: "void slot"
  },
  "one-silent-server": {
    file: `${internal}/hold/ReleaseTime.ts`,
    fixed: "this.#silent.size === 0 || this.#answering.has(slotOf(lock))",
    broken: "this.#silent.size === 0"
  },
  "throwing-tracer": {
    file: `${internal}/acquire/sections.ts`,
    fixed: "Effect.ignore(releaseSoon(held))",
    broken: "Effect.asVoid(Effect.succeed(held))"
  },
  "endless-sections": {
    file: `${internal}/acquire/sections.ts`,
    fixed: "this.#around.#held === undefined",
    broken: "this.#around.#around === this"
  },
  "ended-sections-around": {
    file: `${internal}/locks/LockImpl.ts`,
    fixed: "sectionsInside(holds, sections)",
    broken: "[...holds, ...sections]"
  },
  "never-held": {
    file: `${internal}/client/LockClient.ts`,
    fixed: "if (wasHeld) this.telemetry",
    broken: "this.telemetry"
  },
  "released-before-reentry": {
    file: `${internal}/acquire/reenter.ts`,
    fixed: ": addHold(own, request, restore)",
    broken: ": Effect.suspend(() => addHold(own, request, restore))"
  },
  "leader-waits": {
    file: `${internal}/coordination/candidate.ts`,
    fixed: "hold.by = new Identity(fiber, scope)",
    broken: "void new Identity(fiber, scope)"
  },
  "too-many-permits": {
    file: `${internal}/wait/PermitLine.ts`,
    fixed: "return this.#first(this.supply.total)",
    broken: "return this.#first(Number.POSITIVE_INFINITY)"
  },
  "lost-holding": {
    file: `${internal}/locks/LockImpl.ts`,
    fixed: "return lost === undefined ? Effect.undefined : Effect.fail(lost)",
    broken: "return lost === null ? Effect.fail(lost) : Effect.undefined"
  },
  "label-stays": {
    file: `${internal}/client/Presence.ts`,
    fixed: "this.#mayBeStored = true\n",
    broken: ""
  },
  "older-reader": {
    file: "lua/include/hand_over/older_writer.lua",
    fixed: "if taken_at and tonumber(taken_at) <= waits_since then",
    broken: "if taken_at then"
  },
  overtaking: {
    file: "lua/fair_lock/acquire.lua",
    fixed: "elseif not head or head == ARGV[1] then",
    broken: "elseif not head or head == ARGV[1] or waiter_timeout == 0 then"
  },
  "forced-release": {
    file: "lua/lock/force_release.lua",
    fixed: "if not held_by('') then",
    broken: "if not held_by then"
  },
  "foreign-token": {
    file: "lua/include/tokens/next_token.lua",
    fixed: "if not last then",
    broken: "last = last or 0\n    if not last then"
  },
  "minority-wakes": {
    file: `${internal}/hold/rollback.ts`,
    fixed: 'const tell = asksAgain && client.isQuorum ? "" : undefined',
    broken: "const tell = asksAgain && client.isQuorum ? undefined : undefined"
  },
  "loss-reason": {
    file: `${internal}/hold/Lease.ts`,
    fixed: "...(this.renewalFailure === undefined ? undefined : { cause: this.renewalFailure })",
    broken: ""
  },
  "late-report": {
    file: "lua/fair_lock/refresh.lua",
    fixed: "--@include deadline\nlocal waiter_timeout",
    broken: "local time = redis.call('TIME')\nlocal waiter_timeout"
  },
  "late-place": {
    file: `${internal}/wait/FairQueue.ts`,
    fixed: "if (head?.startsWith(`${this.#client.clientId}:`) === true) this.removePlaces([head])",
    broken: "void head"
  },
  "late-refresh": {
    file: `${internal}/wait/FairQueue.ts`,
    fixed: "Effect.sync(() => lines.openFair(this.#keys).removePlaces(owners))",
    broken: "Effect.sync(() => void [lines, owners])"
  },
  "late-turn": {
    file: `${internal}/hold/rollback.ts`,
    fixed: "if (left < 0) return",
    broken: "if (left < 1e9) return"
  },
  "closed-first": {
    file: `${internal}/client/LockClient.ts`,
    fixed: "const left = client.toGiveBack\n",
    broken: "const left = client.toGiveBack && new Set<Returnable>()\n"
  },
  "late-grant": {
    file: `${internal}/hold/Lease.ts`,
    fixed: "return now < deadline ? new Lease",
    broken: "return deadline > 0 ? new Lease"
  },
  "expired-keys": {
    file: `${internal}/store/memory/Keyspace.ts`,
    fixed: "freed < freedPerWrite",
    broken: "freed < 0 * freedPerWrite"
  },
  "first-failure": {
    file: `${internal}/acquire/ask.ts`,
    fixed: "const transient = waits ? transientFailure(cause) : undefined",
    broken: "const transient = waits === undefined ? transientFailure(cause) : undefined"
  },
  "too-few-replicas": {
    file: `${internal}/report/storeReasons.ts`,
    fixed: 'NotEnoughReplicas: { ran: "no", again: "soon" }',
    broken: 'NotEnoughReplicas: { ran: "no", again: "later" }'
  },
  "short-marker": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "undoMillis + maxSends * Math.ceil(store.commandTimeoutMillis)",
    broken: "undoMillis + 0 * maxSends"
  },
  "long-held-permits": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "returned - this.askedAt > trustedAfterMillis",
    broken: "returned - this.askedAt > 1e6 * trustedAfterMillis"
  },
  "untyped-url": {
    file: "packages/ioredis/src/RedisUrl.ts",
    fixed: 'typeof text === "string" ? parts(text)',
    broken: "text !== undefined ? parts(text)"
  },
  "outer-hold": {
    file: `${internal}/hold/Watchdog.ts`,
    fixed: "renewedHolds > 0 ? Math.min(endsAt, deadline - this.#leadMillis) : deadline",
    broken: "renewedHolds > 1 ? endsAt : deadline"
  },
  "five-seconds": {
    file: "lua/include/fair/skip_the_dead.lua",
    fixed: "math.min(3 * still, 5000)",
    broken: "3 * still"
  },
  "repeated-tries": {
    file: `${internal}/client/RecentReleases.ts`,
    fixed: "if (id === idOf(first) || others.has(id)) continue",
    broken: "void [id, first]"
  },
  "member-down": {
    file: `${internal}/store/quorum/votes.ts`,
    fixed: "failed === 0 || votes + pending >= required",
    broken: "failed === 0"
  },
  "other-database": {
    file: "packages/ioredis/src/internal/connection/Connection.ts",
    fixed: 'const refusesDatabase = refused === "select"',
    broken: 'const refusesDatabase = refused === ""'
  },
  "reader-reentry": {
    file: `${internal}/hold/Lease.ts`,
    fixed: "others.splice(others.indexOf(hold), 1)",
    broken: "others.splice(0)"
  },
  "outer-reader": {
    file: `${internal}/acquire/reenter.ts`,
    fixed: "lease.add(new Hold(lease, request))",
    broken: "new Hold(lease, request)"
  },
  "inner-release": {
    file: `${internal}/hold/Hold.ts`,
    fixed: "watchdog.reschedule(lease)",
    broken: 'lease.client.fork(lease.client.run(lease.kind.release(lease, "")))'
  },
  "cut-reader": {
    file: `${internal}/hold/Watchdog.ts`,
    fixed: "leaseUntil(lease.deadline, now)",
    broken: "leaseUntil(lease.acquiredAt, now)"
  },
  "plain-text": {
    file: "packages/ioredis/src/internal/options/targets.ts",
    fixed: "...address, ...(tls ? { tls } : {}) }",
    broken: "...address, ...(tls ? { tls } : {}), ...ioredis }"
  },
  "left-behind": {
    file: `${internal}/hold/Hold.ts`,
    fixed: "this.by = identity\n",
    broken: "this.by = lease.find(() => true)?.by ?? identity\n"
  },
  "restart-ends-wait": {
    file: `${internal}/acquire/awaitLatch.ts`,
    fixed: "catchTransient(look())",
    broken: "catchTransient(Effect.orDie(look()))"
  },
  "refused-release": {
    file: `${internal}/store/failures.ts`,
    fixed: 'boolean => consequences[reason].again === "never"',
    broken: 'boolean => reason === "NotEnoughReplicas" || consequences[reason].again === "never"'
  },
  "silent-subscription": {
    file: "packages/ioredis/src/internal/command/CommandWriter.ts",
    fixed: "this.#heartbeat = setInterval(this.#beat, 2 * timeoutMillis).unref()",
    broken: "void this.#beat"
  },
  "quorum-shutdown": {
    file: `${internal}/client/LockClient.ts`,
    fixed: "this.toGiveBack.add(lease)\n",
    broken: ""
  },
  "cluster-as-server": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: "/\\bCROSSSLOT\\b|^(MOVED|ASK) \\d/",
    broken: "/\\bCROSSSLOT\\b/"
  },
  "slots-apart": {
    file: `${internal}/client/LockClient.ts`,
    fixed: "isTogether(name, keys, (key) => client.store.slot(key)) ??",
    broken: "void isTogether ??"
  },
  "connection-log": {
    file: "packages/ioredis/src/internal/connection/ConnectionLog.ts",
    fixed: 'logged.has("lasting") || logged.has(kind)',
    broken: 'logged.has("lasting")'
  },
  "many-readers": {
    file: "lua/include/readers/longest_read.lua",
    fixed: "if redis.call('ZCARD', KEYS[4]) == readers then",
    broken: "readers = math.min(readers, 100)\n  if readers < 0 then"
  },
  "unknown-script": {
    file: "packages/ioredis/src/internal/command/ScriptCommand.ts",
    fixed: "if (this.#doubts === writer.doubts) writer.doubtScripts()",
    broken: "writer.doubtScripts()"
  },
  "clocks-apart": {
    file: `${internal}/store/quorum/QuorumStore.ts`,
    fixed: "result.onRecord >= required ?",
    broken: "result.onRecord >= 0 ?"
  },
  "blocked-event-loop": {
    file: "packages/ioredis/src/internal/command/ScriptCommand.ts",
    fixed: "this.#immediate = setImmediate(this.#expire)",
    broken: "this.#expire()"
  },
  "half-open": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: "Effect.andThen(Effect.exit(onSilence), Effect.never)",
    broken: "Effect.never"
  },
  "place-in-outage": {
    file: `${internal}/wait/FairQueue.ts`,
    fixed: "if (!this.#waiters.has(owner)) this.#gone.add(owner)",
    broken: "void owner"
  },
  "shown-password": {
    file: "packages/ioredis/src/internal/failure.ts",
    fixed: "cause: plain(error, hide)",
    broken: "cause: hide && plain ? error : undefined"
  },
  "refused-password": {
    file: "packages/ioredis/src/internal/failure.ts",
    fixed: "return shown.split(refusal).map(hide).join(refusal)",
    broken: "return refusal && hide(shown)"
  },
  "error-name": {
    file: "packages/core/src/LockError.ts",
    fixed: '  override get message(): string {\n    return this.attempt === "upgrade"',
    broken:
      '  override get name(): string {\n    return this.lock\n  }\n  override get message(): string {\n    return this.attempt === "upgrade"'
  },
  "member-failures": {
    file: `${internal}/store/quorum/votes.ts`,
    fixed: "const failures = failed.map(",
    broken: "const failures = failed.slice(0, 0).map("
  },
  "late-member": {
    file: `${internal}/store/quorum/QuorumStore.ts`,
    fixed: "Math.max(overAt, from)",
    broken: "Math.max(Math.min(overAt, releasedAt + settings.watchdogLeaseMillis), from)"
  },
  "unheard-member": {
    file: `${internal}/store/quorum/QuorumStore.ts`,
    fixed: "if (unknown.length > 0)",
    broken: "if (unknown.length < 0)"
  },
  "writer-reads": {
    file: `${internal}/acquire/ask.ts`,
    fixed: "writer?.asksFor(leaseMillis, sentAt)\n",
    broken: ""
  },
  "first-server": {
    file: "packages/core/src/RedisDriver.ts",
    fixed: "Layer.Layer<RedisDriver, never, Redis.Redis> = Layer.fresh(",
    broken: "Layer.Layer<RedisDriver, never, Redis.Redis> = ("
  },
  "loading-server": {
    file: "packages/ioredis/src/internal/options/settings.ts",
    fixed: "  maxLoadingRetryTime: 100,\n",
    broken: ""
  },
  "run-ends": {
    file: "packages/cli/src/run/CommandGroup.ts",
    fixed: "yield* killOnExit(group)\n",
    broken: "void killOnExit\n"
  },
  "several-starve": {
    file: `${internal}/locks/MultiAcquire.ts`,
    fixed: "Effect.sleep(this.#patience.millis)",
    broken: "Effect.sleep(1)"
  },
  "several-overtaken": {
    file: "lua/multi_lock/release.lua",
    fixed: "for j = 1, each do\n    keys[j] =",
    broken: "for j = 1, 2 do\n    keys[j] ="
  },
  "fair-rollback": {
    file: `${internal}/hold/rollback.ts`,
    fixed: "hasPlace || ownerRef.kind.queued",
    broken: "hasPlace"
  },
  "two-rollbacks": {
    file: `${internal}/hold/rollback.ts`,
    fixed:
      "if (clients.some(({ overdueRollbacks }) => overdueRollbacks > 0)) return Effect.void\n    const { now } = clients[0]!\n    const beganAt = now()\n",
    broken: "const { now } = clients[0]!\n    const beganAt = now() + 1000\n"
  },
  "slow-members": {
    file: `${internal}/store/quorum/QuorumStore.ts`,
    fixed: "call.hurry(now() + Math.max(shortestHurryMillis, tookMillis))",
    broken: "void shortestHurryMillis"
  },
  "after-flushall": {
    file: `${internal}/acquire/ask.ts`,
    fixed: 'for (const held of others) held.lose("NotOwner")\n',
    broken: ""
  },
  "other-names": {
    file: "packages/cli/src/ui/ui.ts",
    fixed: "serves: matcherOf(pattern)",
    broken: "serves: () => matcherOf(pattern) !== undefined"
  },
  "wrong-arguments": {
    file: "packages/ioredis/src/internal/options/checks.ts",
    fixed: 'typeof name === "string" && name !== ""',
    broken: 'name !== ""'
  },
  "own-commands": {
    file: `${internal}/hold/Tracking.ts`,
    fixed: "for (const key of keys) this.#changed.add(key)\n",
    broken: "void keys\n"
  },
  "busy-server": {
    file: `${internal}/hold/Tracking.ts`,
    fixed: "        Effect.retry({ while: ({ isTransient }) => isTransient, schedule: reconnecting }),\n",
    broken: ""
  },
  "ticks-again": {
    file: `${internal}/coordination/schedule.ts`,
    fixed: "dueTicks(cron, settled, now,",
    broken: "dueTicks(cron, last ?? 0, now,"
  },
  "tick-half-way": {
    file: `${internal}/coordination/schedule.ts`,
    fixed: "last < seen ? [] :",
    broken: "seen < 0 ? [] :"
  },
  "claimed-tick": {
    file: `${internal}/coordination/schedule.ts`,
    fixed: "Effect.ensuring(",
    broken: "Effect.andThen("
  },
  "waiter-of-once": {
    file: "packages/core/src/RunOnce.ts",
    fixed: "{ while: isHarmless, schedule: reconnecting }",
    broken: "{ while: (error) => isHarmless(error) && reconnecting === undefined }"
  },
  "silent-victory": {
    file: "packages/core/src/LeaderElection.ts",
    fixed: "() => giveUpCandidacy(holding))",
    broken: "() => Effect.andThen(Effect.ignore(holding.release), giveUpCandidacy(holding)))"
  },
  "member-closes": {
    file: `${internal}/client/LockClient.ts`,
    fixed: 'Effect.all([...quorums, leave], { concurrency: "unbounded", discard: true })',
    broken: "Effect.all([...quorums, leave], { discard: true })"
  },
  "last-moment": {
    file: `${internal}/client/LockClient.ts`,
    fixed: "checks < leastChecks ||",
    broken: "checks < 0 * leastChecks ||"
  },
  "kept-members": {
    file: `${internal}/hold/rollback.ts`,
    fixed: "awaitRollback(clients, Fiber.await(fiber))",
    broken: "Effect.as(Fiber.await(fiber), void clients)"
  },
  "member-min-hold": {
    file: `${internal}/locks/MultiHold.ts`,
    fixed: "&& !staysTaken(lease)",
    broken: "&& staysTaken !== undefined"
  },
  "told-once-more": {
    file: `${internal}/client/RecentReleases.ts`,
    fixed: "...told.map(() => publish)",
    broken: "...told"
  },
  "wrong-type-wait": {
    file: `${internal}/acquire/ask.ts`,
    fixed: "= restore(describeWrongType(",
    broken: "= (describeWrongType("
  },
  "defect-in-release": {
    file: `${internal}/hold/release.ts`,
    fixed: "      client.underWay--\n      return Effect.failCause(failed)",
    broken: "      return Effect.failCause(failed)"
  },
  "defect-in-rollback": {
    file: `${internal}/hold/rollback.ts`,
    fixed: "awaitRollback([client], Fiber.await(first))",
    broken:
      'awaitRollback([client], Effect.flatMap(Fiber.await(first), ({ _tag }) => (_tag === "Success" ? Effect.void : Effect.never)))'
  },
  "one-of-two-told": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: "for (const listener of [...reports.listeners]) listener.onSignal(signal)",
    broken: "[...reports.listeners].at(-1)?.onSignal(signal)"
  },
  "one-address": {
    file: "packages/ioredis/src/internal/serverDriver.ts",
    fixed: "if (connection.hasLeftReplica) {",
    broken: 'if (connection.hasLeftReplica && writer.server === "") {'
  },
  "two-servers": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: "if (!mayReplace || subscriber.clientId(CHANNEL) !== asked) return",
    broken: "if (mayReplace || subscriber.clientId(CHANNEL) !== asked) return"
  },
  "former-master-waits": {
    file: "packages/ioredis/src/internal/connection/BlockingConnections.ts",
    fixed: "if (Exit.isSuccess(exit) && exit.value.some(isReadOnly)) this.leave(origin.client)",
    broken: "void isReadOnly"
  },
  "idle-at-lost-nodes": {
    file: "packages/ioredis/src/internal/clusterDriver.ts",
    fixed: "onClose: blocking.leave",
    broken: "onClose: () => void blocking.leave"
  },
  "asked-again": {
    file: "packages/ioredis/src/internal/tracking.ts",
    fixed: "    isOver = true\n    listening.close()\n    subscription.cancel()\n    register(undefined)\n    for",
    broken: "    for"
  },
  "busy-master": {
    file: "packages/ioredis/src/internal/connection/connecting.ts",
    fixed: '["Failed", "NoPermission"].includes',
    broken: '["Failed", "NoPermission", "Busy"].includes'
  },
  "never-called-back": {
    file: "packages/ioredis/src/internal/command/ScriptCommand.ts",
    fixed: "    for (const command of this.all) command.close()\n",
    broken: ""
  },
  "owner-on-terminal": {
    file: "packages/cli/src/names/ls.ts",
    fixed: "of: ({ owner }) => visible(owner)",
    broken: "of: ({ owner }) => owner"
  },
  "others-lines": {
    file: "packages/cli/src/bin.ts",
    fixed: "console.warn = (...parts) => sayNow(format(...parts))\n",
    broken: "void [format, sayNow]\n"
  },
  "stopped-command": {
    file: "packages/cli/src/run/run.ts",
    fixed: '  yield* group.signal("SIGCONT")\n',
    broken: ""
  },
  "unusable-token": {
    file: "packages/cli/src/ui/uiCommand.ts",
    fixed: "/^[!-~]{16,}$/",
    broken: "/^[^]{16,}$/"
  },
  "many-stars": {
    file: "packages/cli/src/ui/glob.ts",
    fixed: "`(?=([^]*?${each}))\\\\${i + 1}`",
    broken: "`[^]*${each}`"
  },
  "waiter-of-once-loses": {
    file: "packages/core/src/RunOnce.ts",
    fixed: "error instanceof LockLost || ",
    broken: ""
  },
  "stored-result": {
    file: "packages/core/src/RunOnce.ts",
    fixed: "() => Option.isSome(stored)",
    broken: "() => lifeMillis === 0"
  },
  "completed-again": {
    file: "packages/core/src/Singleton.ts",
    fixed: "(hasCompleted ? Effect.void : work)",
    broken: "work"
  },
  "interrupts-itself": {
    file: "packages/core/src/Singleton.ts",
    fixed: "    Effect.tapError((cause) =>\n",
    broken: '    Effect.tapError((cause) => cause.reasons.every(({ _tag }) => _tag === "Interrupt") ? Effect.void :\n'
  },
  "members-own-lease": {
    file: `${internal}/locks/MultiAcquire.ts`,
    fixed: 'restore(Effect.all(renewals, { concurrency: "unbounded", discard: true }))',
    broken: "Effect.void"
  },
  "members-lease-ends": {
    file: `${internal}/locks/MultiAcquire.ts`,
    fixed: ", ...renewals]",
    broken: "]"
  },
  "last-millisecond": {
    file: "lua/semaphore/acquire.lua",
    fixed: "if left_of_counter >= 0 and",
    broken: "if left_of_counter > 0 and"
  },
  "last-hours": {
    file: `${internal}/acquire/acquirePermits.ts`,
    fixed: "const driftFactor = 0.001",
    broken: "const driftFactor = 0.01"
  },
  "hold-of-a-tick": {
    file: `${internal}/coordination/schedule.ts`,
    fixed: '        if (state === "running") restartMaxHold(holding)\n',
    broken: ""
  },
  "counted-pauses": {
    file: `${internal}/acquire/waitInLine.ts`,
    fixed: "kind.backoff === undefined ? kind.name : undefined,",
    broken: "kind.name,"
  },
  "never-completed": {
    file: "packages/core/src/Singleton.ts",
    fixed: 'Effect.retry(Schedule.spaced("30 seconds"))',
    broken: "Effect.retry({ times: 0 })"
  },
  "refused-result": {
    file: `${internal}/coordination/record.ts`,
    fixed: "(error.isTransient || (!isFinal(error) && now() < until))",
    broken: "error.isTransient"
  },
  "result-not-stored": {
    file: "packages/core/src/RunOnce.ts",
    fixed: "Effect.mapError(written, afterWork)",
    broken: "Effect.mapError(written, (error) => error ?? afterWork(error))"
  },
  "half-a-time-to-live": {
    file: `${internal}/coordination/record.ts`,
    fixed: 'parsePeriod("timeToLive", timeToLive)',
    broken: 'typeof timeToLive === "object" ? 5000 : parsePeriod("timeToLive", timeToLive)'
  }
}

/** The rows of the page: the name of each fix, the test file and the title. */
const rows = () => {
  const page = readFileSync(join(root, "docs/track-record.md"), "utf8")
  return page.split("\n").flatMap((line) => {
    const test = /\[`([^`]+)`\]\(\.\.\/(test\/[^)]+)\) › ([^|]+?) \|/.exec(line)
    if (test === null) return []
    const [, , file, title] = test
    return [{ name: /`pnpm track-record ([a-z-]+)`/.exec(line)?.[1], file, title }]
  })
}

/** The command that runs, with its own children. */
let running
/** What has ended it, until that is reported. */
let endedBy

const end = (by) => {
  endedBy = by
  try {
    process.kill(-running.pid, "SIGTERM")
  } catch {
    // it has just ended by itself
  }
}

const run = async (command, args, cwd) => {
  running = spawn(command, args, { cwd: join(root, cwd), stdio: "ignore", detached: true })
  const timer = setTimeout(end, 300_000, "its timeout")
  await once(running, "close")
  clearTimeout(timer)
  if (endedBy === undefined) return
  const by = endedBy
  endedBy = undefined
  throw new Error(`${command} was ended by ${by}`)
}

const build = async () => {
  await run("node", ["packages/core/scripts/embed-lua.mjs"], ".")
  // with type errors, too: a fix may be needed for the types as well
  await run(
    "node_modules/.bin/tsc",
    ["-b", "packages/core", "packages/ioredis", "packages/cli", "packages/testing"],
    "."
  )
}

/** The numbers of tests with this title that pass and that fail; it stops at the first one that fails. */
const runTest = async ({ file, title }) => {
  const report = join(mkdtempSync(join(tmpdir(), "track-record-")), "report.json")
  const pattern = title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("…", ".*")
  // the suites of the contract run on the store in memory
  const path = file.includes("/suite/") ? "contract/memory" : file.replace(/^test\//, "")
  const options = ["--bail=1", "--testTimeout=120000", "--reporter=json", `--outputFile=${report}`]
  await run("npx", ["vitest", "run", path, "-t", pattern, ...options], "test")
  const { numFailedTests, numPassedTests } = JSON.parse(readFileSync(report, "utf8"))
  return { failed: numFailedTests, passed: numPassedTests }
}

/** Whether the row's test passes. */
const passes = async (row) => {
  const { failed, passed } = await runTest(row)
  const isPassed = failed === 0 && passed > 0
  if (!isPassed) console.log(`${failed > 0 ? "FAILS WITH THE FIX" : "RUNS NO TEST"}  ${row.name}`)
  return isPassed
}

/** Whether the row's test fails without the fix. Leaves a build without the fix. */
const finds = async (row) => {
  const { broken, file, fixed } = fixes[row.name]
  const path = join(root, file)
  const text = readFileSync(path, "utf8")
  try {
    writeFileSync(
      path,
      text.replace(fixed, () => broken)
    )
    await build()
    const isFound = (await runTest(row)).failed > 0
    console.log(`${isFound ? "found" : "NOT FOUND"}  ${row.name}`)
    return isFound
  } finally {
    writeFileSync(path, text)
  }
}

const check = (rows) =>
  rows.flatMap(({ file, name, title }) => {
    const problems = []
    const text = readFileSync(join(root, file), "utf8")
    for (const part of title.split("…")) {
      if (!text.includes(part.trim())) problems.push(`${file} has no test "${title}"`)
    }
    if (name !== undefined) {
      const fix = fixes[name]
      if (fix === undefined) problems.push(`no fix is called ${name}`)
      else if (readFileSync(join(root, fix.file), "utf8").split(fix.fixed).length !== 2) {
        problems.push(`${fix.file} does not have the fix of ${name}, or twice`)
      }
    }
    return problems
  })

const all = rows()
const problems = [
  ...check(all),
  ...Object.keys(fixes).flatMap((name) => (all.some((row) => row.name === name) ? [] : [`no row has ${name}`]))
]
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exit(1)
const wanted = process.argv.slice(2)
if (wanted[0] === "--check") {
  console.log(`${all.length} rows, ${Object.keys(fixes).length} of which can be shown`)
} else {
  const unknown = wanted.find((name) => fixes[name] === undefined)
  if (unknown !== undefined) throw new Error(`no row is called ${unknown}`)
  const chosen = all.filter(({ name }) => name !== undefined && (wanted.length === 0 || wanted.includes(name)))
  // they end the command that runs, not this process, which restores the sources
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, end)
  await build()
  const passed = []
  for (const row of chosen) if (await passes(row)) passed.push(row)
  let found = 0
  try {
    for (const row of passed) if (await finds(row)) found++
  } finally {
    await build()
  }
  process.exitCode = found === chosen.length ? 0 : 1
}
