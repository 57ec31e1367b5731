/**
 * `redis-lock ui`: what its server answers, and to whom.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { freshName } from "../kit/names.ts"
import { soon, until } from "../kit/eventually.ts"
import { client, endings, holdElsewhere, redisLock } from "./redisLock.ts"
import { ask, askToFree, eventsOf, startUi, theToken as token, type Ui } from "./uiServer.ts"
import { testLive, suitesOn } from "../kit/test.ts"
import { scriptsRun } from "../kit/server/commandsOf.ts"

/** One that may free locks, for several tests. */
class TheUi extends Context.Service<TheUi, Ui>()("test/cli/TheUi") {
  static readonly layer = Layer.effect(this, startUi(["--allow-release", "ui:*"]))
}

suitesOn(TheUi.layer, { excludeTestServices: true })("redis-lock ui that may free locks", (test) => {
  test("Every answer of redis-lock ui forbids inline scripts, frames, sniffing and requests to elsewhere", function* () {
    const ui = yield* TheUi
    const answers = yield* Effect.all([
      ask(ui, "/"),
      ask(ui, "/ui/page/main.js"),
      ask(ui, "/api/locks"),
      ask(ui, "/nowhere"),
      ask(ui, "//"),
      ask(ui, "http://["),
      ask(ui, "/", { headers: { host: "evil.example" } }),
      askToFree(ui, freshName("ui"), [])
    ])
    assert.deepStrictEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 404, 404, 404, 403, 409]
    )
    for (const { headers } of answers) {
      const policy = String(headers["content-security-policy"])
      assert.include(policy, "default-src 'none'; script-src 'self'; style-src 'self'")
      assert.include(policy, "frame-ancestors 'none'")
      assert.include(policy, "require-trusted-types-for 'script'")
      assert.notInclude(policy, "unsafe")
      assert.strictEqual(headers["x-content-type-options"], "nosniff")
      assert.strictEqual(headers["cache-control"], "no-store")
      assert.isUndefined(headers["access-control-allow-origin"])
    }
  })

  test("The page is made of files of its own alone, has no inline script or style, and reads no other file", function* () {
    const ui = yield* TheUi
    const page = yield* ask(ui, "/")
    assert.notMatch(page.text, /<style|<script(?! type="module" src=)|\son\w+=|\sstyle=|https?:/)
    const seen = new Set<string>()
    const load = (path: string): Effect.Effect<void> =>
      Effect.gen(function* () {
        if (seen.has(path)) return
        seen.add(path)
        const { headers, status, text } = yield* ask(ui, path)
        assert.strictEqual(status, 200, path)
        if (!String(headers["content-type"]).startsWith("text/javascript")) return
        assert.notMatch(text, /innerHTML|insertAdjacentHTML|document\.write|https?:\/\//, path)
        for (const [, imported] of text.matchAll(/from "([^"]+)"/g)) {
          yield* load(new URL(imported!, `${ui.origin}${path}`).pathname)
        }
      })
    for (const [, path] of page.text.matchAll(/(?:src|href)="([^"#]+)"/g)) yield* load(`/${path}`)
    assert.isAbove(seen.size, 10)
    for (const path of ["/../package.json", "/ui/ui.js", "/ui/page/../guard.js", "/bin.js", "/ui/page/main.js.map"]) {
      assert.strictEqual((yield* ask(ui, path)).status, 404, path)
    }
  })

  test("redis-lock ui answers only to names of this machine, so that no other name can be led to it", function* () {
    const ui = yield* TheUi
    const statusFor = (host: string) => Effect.map(ask(ui, "/api/locks", { headers: { host } }), ({ status }) => status)
    // another port: the end of an ssh tunnel
    for (const host of [`127.0.0.1:${ui.port}`, "localhost:8080", "LOCALHOST", "[::1]:80", "127.0.0.2"]) {
      assert.strictEqual(yield* statusFor(host), 200, host)
    }
    const strangers = [
      "evil.example",
      "localhost.evil.example",
      "127.0.0.1.evil.example",
      "10.0.0.7",
      "127.0.0.1@evil",
      "a b",
      "."
    ]
    for (const host of strangers) assert.strictEqual(yield* statusFor(host), 403, host)
  })

  test("redis-lock ui refuses requests that come from other pages", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    const owner = yield* holdElsewhere(redis, name)
    const ui = yield* TheUi
    const others = ["http://evil.example", "http://localhost:3000", `http://127.0.0.1:${ui.port + 1}`, "null"]
    for (const origin of others) {
      assert.strictEqual((yield* ask(ui, "/api/locks", { headers: { origin } })).status, 403, origin)
      assert.strictEqual((yield* askToFree(ui, name, [owner], { origin })).status, 403, origin)
    }
    for (const site of ["cross-site", "same-site"]) {
      const headers = { "sec-fetch-site": site }
      assert.strictEqual((yield* ask(ui, `/api/lock?name=${name}`, { headers })).status, 403)
      assert.strictEqual((yield* askToFree(ui, name, [owner], headers)).status, 403)
    }
    // what a form, or a program without an origin, can send
    const forms: ReadonlyArray<Record<string, string>> = [
      { origin: ui.origin, "content-type": "text/plain" },
      { "content-type": "application/json" }
    ]
    const statuses = yield* Effect.forEach(forms, (headers) =>
      ask(ui, "/api/release", { method: "POST", headers, body: JSON.stringify({ name, seen: [owner] }) })
    )
    assert.deepStrictEqual(
      statuses.map(({ status }) => status),
      [415, 403]
    )
    assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 1)
  })

  test("redis-lock ui streams the locks that are held, acquired and released, and who has held them", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    const owner = yield* holdElsewhere(redis, `${name}:a`)
    const ui = yield* TheUi
    const events = yield* eventsOf(ui, "/api/locks")
    const all = () => events.flatMap(({ data, event }) => (event === "locks" ? data.held : []))
    const held = () => all().filter((line) => line.name.startsWith(name))
    const free = () => events.flatMap(({ data, event }) => (event === "locks" ? data.free : []))
    yield* until("the first lock is told", () => held().length > 0)
    assert.strictEqual(events[0]!.event, "about")
    assert.strictEqual(events[0]!.data.mayRelease, true)
    const [line] = held()
    assert.deepStrictEqual(
      [line.name, line.holders[0].owner, line.holders[0].mode, line.waiting],
      [`${name}:a`, owner, "exclusive", 0]
    )
    assert.isAtMost(line.lease, 60_000)
    // the first may have been there when the page began to look
    const next = yield* holdElsewhere(redis, `${name}:b`)
    yield* until("the second lock is told", () => held().some((line) => line.name === `${name}:b` && !line.isOlder))
    yield* Effect.promise(() => redis.del(`${name}:b`))
    yield* until("its release is told", () => free().includes(`${name}:b`))

    const page = yield* eventsOf(ui, `/api/lock?name=${encodeURIComponent(`${name}:b`)}`)
    yield* until("its page tells who has held it", () => page.some(({ data }) => data.holds.length > 0))
    const { holds, state } = page.at(-1)!.data
    assert.deepStrictEqual([state.kind, state.holders, holds.length], ["none", [], 1])
    assert.deepStrictEqual([holds[0].owner, holds[0].isOlder], [next, false])
    assert.isAbove(holds[0].until, holds[0].since)

    // nobody holds what its minHold keeps
    yield* Effect.promise(() => redis.multi().hset(`${name}:c`, `${next}:kept`, 1).pexpire(`${name}:c`, 60_000).exec())
    yield* until("the kept lock is told", () => held().some((line) => line.name === `${name}:c`))
    const kept = yield* eventsOf(ui, `/api/lock?name=${encodeURIComponent(`${name}:c`)}`)
    yield* until("its page is told", () => kept.length > 0)
    assert.deepStrictEqual(kept[0]!.data.holds, [])
  })

  test("redis-lock ui exits with 71 if its port is taken", function* () {
    const ui = yield* TheUi
    const { code, stderr } = yield* redisLock(["ui", "--port", String(ui.port)])
    assert.strictEqual(code, 71, stderr)
    assert.include(stderr, "cannot listen")
  })
})

describe("redis-lock ui", () => {
  testLive(
    "With a token redis-lock ui tells and frees nothing without it, and serves the page that asks for it",
    function* () {
      const name = freshName("ui")
      const redis = yield* client()
      const owner = yield* holdElsewhere(redis, name)
      const started = yield* startUi(["--allow-release", "--host", "0.0.0.0", "--allow-host", "locks.example", name])
      const ui = { ...started, authorization: {} }
      const statusOf = (headers: Record<string, string>) =>
        Effect.map(ask(ui, "/api/locks", { headers }), ({ status }) => status)
      assert.strictEqual((yield* ask(ui, "/")).status, 200)
      assert.strictEqual(yield* statusOf({}), 401)
      for (const wrong of [token.slice(1), `${token}x`, token.toUpperCase(), "é"]) {
        assert.strictEqual(yield* statusOf({ authorization: `Bearer ${encodeURIComponent(wrong)}` }), 401, wrong)
      }
      assert.strictEqual((yield* askToFree(ui, name, [owner])).status, 401)
      const right = { authorization: `Bearer ${token}` }
      assert.strictEqual(yield* statusOf(right), 200)
      // by addresses and the names that are given, and by no others
      assert.strictEqual(yield* statusOf({ ...right, host: "10.1.2.3:7379" }), 200)
      assert.strictEqual(yield* statusOf({ ...right, host: "locks.example" }), 200)
      assert.strictEqual(yield* statusOf({ ...right, host: "evil.example" }), 403)
      assert.strictEqual((yield* askToFree(ui, name, [owner], right)).status, 200)
    }
  )

  testLive("redis-lock ui that others could reach needs a token, and one that cannot be guessed", function* () {
    const how = "needs --token, or better REDIS_LOCK_UI_TOKEN=$(openssl rand -hex 16)"
    const mistakes = [
      [["--host", "0.0.0.0"], `others can reach the page then: it ${how}`],
      [["--allow-host", "locks.example"], `others can reach the page then: it ${how}`],
      [["--allow-release"], `--allow-release ${how}`],
      [["--host", "0.0.0.0", "--token", "short"], "at least 16 ASCII characters"],
      [["--port", "65536"], "0 to 65535"],
      [["--interval", "10ms"], "at least 100ms"]
    ] as const
    const all = yield* endings(mistakes.map(([flags]) => ["ui", ...flags]))
    for (const [i, [, problem]] of mistakes.entries()) {
      const { code, stderr } = all[i]!
      assert.strictEqual(code, 64, stderr)
      assert.include(stderr, problem)
    }
  })
  testLive("redis-lock ui refuses a token that no request could carry, and does not repeat it", function* () {
    for (const wrong of [`${token}\r`, ` ${token}`, `${token}\u{1f512}`, `${token}\u00e9`]) {
      const { code, stderr } = yield* redisLock(["ui", "--port", "0"], { env: { REDIS_LOCK_UI_TOKEN: wrong } })
      assert.strictEqual(code, 64, stderr)
      assert.include(stderr, "at least 16 ASCII characters without spaces")
      assert.notInclude(stderr, token)
    }
  })
  testLive("redis-lock ui tells neither user nor password of Redis, also while Redis does not answer", function* () {
    const server = yield* RedisServer.start()
    const redis = yield* client(server.url)
    const rule = ["ACL", "SETUSER", "watcher", "on", ">s3cr3t-word", "~*", "&*", "+@all"] as const
    yield* Effect.promise(() => redis.call(...rule))
    yield* holdElsewhere(redis, "lost")
    const url = server.url.replace("redis://", "redis://watcher:s3cr3t-word@")
    const ui = yield* startUi([], { env: { REDIS_URL: url } })
    const events = yield* eventsOf(ui, "/api/locks")
    const told = (event: string, seen: (data: any) => boolean) =>
      until(`it tells ${event}`, () => events.some((one) => one.event === event && seen(one.data)))
    yield* told("locks", ({ held }) => held.length === 1 && held[0].isOlder)
    yield* server.kill
    yield* told("trouble", ({ message }) => message !== null)
    // the server comes back empty: also the user is gone, and is made again
    yield* server.restart
    const after = yield* client(server.url)
    yield* Effect.promise(() => after.call(...rule))
    yield* told("trouble", ({ message }) => message === null)
    yield* told("locks", ({ free }) => free.includes("lost"))
    yield* holdElsewhere(after, "next")
    yield* told("locks", ({ held }) => held.some(({ name }: { name: string }) => name === "next"))
    const text = JSON.stringify(events)
    assert.include(text, new URL(server.url).host)
    assert.notMatch(text, /s3cr3t|watcher/)
  })
  testLive("redis-lock ui shows the page of one name where Redis refuses to let it look at all", function* () {
    const server = yield* RedisServer.start()
    const redis = yield* client(server.url)
    const rule = ["ACL", "SETUSER", "seer", "on", ">secret", "~*", "&*", "+@all", "-scan"] as const
    yield* Effect.promise(() => redis.call(...rule))
    const owner = yield* holdElsewhere(redis, "one")
    const ui = yield* startUi([], { env: { REDIS_URL: server.url.replace("redis://", "redis://seer:secret@") } })
    const all = yield* eventsOf(ui, "/api/locks")
    yield* until("it tells why it shows no list", () => all.some(({ data }) => /NOPERM/.test(data.message)))
    const page = yield* eventsOf(ui, "/api/lock?name=one")
    yield* until("the page shows the holder", () => page.some(({ data }) => data.state?.holders[0]?.owner === owner))
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "seer", "+scan"))
    yield* until("the list shows it", () => all.some(({ data }) => data.held?.[0]?.name === "one"))
  })
  testLive("Without --allow-release redis-lock ui frees nothing", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    const owner = yield* holdElsewhere(redis, name)
    const ui = yield* startUi([name])
    const { status, text } = yield* askToFree(ui, name, [owner])
    assert.strictEqual(status, 403)
    assert.include(text, "--allow-release")
    assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 1)
  })

  testLive(
    "With --allow-release redis-lock ui frees what the page showed, and not what others hold by now",
    function* () {
      const name = freshName("ui")
      const redis = yield* client()
      const owner = yield* holdElsewhere(redis, name)
      yield* Effect.promise(() => redis.set(`${name}:latch`, 3))
      const ui = yield* startUi(["--allow-release", `${name}*`])
      const release = (lock: string, seen: ReadonlyArray<string>) =>
        Effect.map(askToFree(ui, lock, seen), ({ status, text }) => [status, JSON.parse(text).message])
      assert.deepStrictEqual(yield* release(name, []), [409, `"${name}" is held by others now: nothing was freed`])
      assert.deepStrictEqual(yield* release(name, ["another:1"]), [
        409,
        `"${name}" is held by others now: nothing was freed`
      ])
      assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 1)
      assert.deepStrictEqual(yield* release(name, [owner]), [200, `freed "${name}"`])
      assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 0)
      assert.deepStrictEqual(yield* release(name, [owner]), [409, `nobody holds "${name}"`])
      assert.strictEqual((yield* release(`${name}:latch`, []))[0], 409)
      assert.strictEqual((yield* release(`${name}\0`, []))[0], 400)
      const malformed = yield* ask(ui, "/api/release", {
        method: "POST",
        headers: { "content-type": "application/json", origin: ui.origin },
        body: "{"
      })
      assert.strictEqual(malformed.status, 400)
      yield* ui.running.signal("SIGTERM")
      const { code, stderr } = yield* ui.running.ended
      assert.strictEqual(code, 143)
      assert.include(stderr, `redis-lock: for the page: freed "${name}"; it was held by ${owner}`)
    }
  )

  testLive(
    "redis-lock ui shows and frees no name but those that its pattern matches, as Redis matches them",
    function* () {
      const redis = yield* client()
      const stem = freshName("ui")
      const patterns = [
        [`${stem}:report:*`, ["report:", "report:a\nb"], ["report", "db:migrate", "xreport:1"]],
        [`${stem}:[ab]?[^c]\\*`, ["a1d*", "bxa*"], ["c1d*", "a1c*", "a1dx", "ad*"]],
        [`${stem}:[d-b]é`, ["cé"], ["aé", "ce"]],
        [`${stem}:*a*[ab]b**`, ["aab", "xaxbbx", "abab"], ["ab", "abxa", "bba"]]
      ] as const
      for (const [pattern, matching, others] of patterns) {
        const ui = yield* startUi(["--allow-release", pattern])
        for (const end of [...matching, ...others]) {
          const name = `${stem}:${end}`
          const isMatching = (matching as ReadonlyArray<string>).includes(end)
          const [, found] = yield* Effect.promise(async () => {
            await redis.set(name, 1)
            const answer = await redis.scan(0, "MATCH", pattern, "COUNT", 1_000_000)
            await redis.del(name)
            return answer
          })
          assert.strictEqual(found.includes(name), isMatching, `Redis: ${name}`)
          const owner = yield* holdElsewhere(redis, name)
          const events = yield* eventsOf(ui, `/api/lock?name=${encodeURIComponent(name)}`)
          yield* until("its page is told", () => events.length > 0)
          const [{ data, event }] = events as [(typeof events)[number]]
          assert.strictEqual(event, isMatching ? "lock" : "refused", name)
          if (isMatching) assert.isTrue(data.mayRelease, name)
          else {
            assert.deepStrictEqual(Object.keys(data), ["message"])
            assert.include(data.message, "does not match")
            assert.notInclude(data.message, owner)
          }
          const { status, text } = yield* askToFree(ui, name, [owner])
          assert.strictEqual(status, isMatching ? 200 : 403, name)
          assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), isMatching ? 0 : 1)
          if (!isMatching) assert.include(text, "does not match")
          yield* Effect.promise(() => redis.del(name))
        }
      }
    }
  )

  testLive("A long name that many stars of the pattern almost match does not hold up redis-lock ui", function* () {
    const ui = yield* startUi([`${"*a".repeat(12)}b`])
    const events = yield* eventsOf(ui, `/api/lock?name=${"a".repeat(10_000)}`)
    yield* until("its page is told", () => events.length > 0)
    assert.include(events[0]!.data.message, "does not match")
  })

  testLive("redis-lock ui gives back the permits that the page showed, and none that was acquired since", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    const [seen, gone, later] = [1, 2, 3].map((byte) => Buffer.alloc(16, byte))
    const ends = Date.now() + 60_000
    yield* Effect.promise(() =>
      redis.multi().set(name, "1").zadd(`{${name}}:timeout`, ends, seen!, ends, later!).exec()
    )
    const ui = yield* startUi(["--allow-release", `${name}*`])
    const ids = [seen!, gone!].map((id) => id.toString("hex"))
    assert.strictEqual((yield* askToFree(ui, name, ids.slice(1))).status, 409)
    assert.strictEqual(yield* Effect.promise(() => redis.get(name)), "1")
    const { status, text } = yield* askToFree(ui, name, ids)
    assert.deepStrictEqual([status, JSON.parse(text).message], [200, `freed 1 permit of "${name}"; 1 more was held`])
    assert.strictEqual(yield* Effect.promise(() => redis.get(name)), "2")
    const left = yield* Effect.promise(() => redis.callBuffer("ZRANGE", `{${name}}:timeout`, "0", "-1"))
    assert.deepStrictEqual(left, [later!])
  })

  testLive("However many pages show one name, redis-lock ui looks at it about once per interval", function* () {
    const server = yield* RedisServer.start()
    const redis = yield* client(server.url)
    const ui = yield* startUi([], { env: { REDIS_URL: server.url } })
    const pages = yield* Effect.all(Array.from({ length: 40 }, () => eventsOf(ui, "/api/lock?name=free")))
    yield* until("all pages are told", () => pages.every((events) => events.length > 0))
    const told = () => Math.max(...pages.map((events) => events.length))
    const [toldBefore, before] = [told(), yield* scriptsRun(redis)]
    yield* until("some looks later", () => told() >= toldBefore + 10)
    const looks = (yield* scriptsRun(redis)) - before
    // a look that is not told yet, or whose news a slow page has missed
    assert.isAtMost(looks, 2 * (told() - toldBefore) + 5)
  })

  testLive("redis-lock ui tells once that no lock can have a name, and ends its events", function* () {
    const ui = yield* startUi([])
    const text = yield* soon(
      "the end of the events",
      Effect.promise(async (signal) => (await fetch(`${ui.origin}/api/lock?name=`, { signal })).text())
    )
    assert.match(text, /^(: still here\n\n)?event: refused\ndata: .*cannot name a lock.*\n\n$/)
  })

  testLive(
    "redis-lock ui lists semaphores with leased permits, with the permit that ends first, and their release",
    function* () {
      const name = freshName("ui")
      const redis = yield* client()
      const now = Date.now()
      yield* Effect.promise(() =>
        redis
          .multi()
          .set(name, "1")
          .zadd(`{${name}}:timeout`, now + 30_000, Buffer.alloc(16, 1))
          .zadd(`{${name}}:timeout`, now + 600_000, Buffer.alloc(16, 2))
          .exec()
      )
      const ui = yield* startUi([`${name}*`])
      const events = yield* eventsOf(ui, "/api/locks")
      const held = () => events.flatMap(({ data, event }) => (event === "locks" ? data.held : []))
      yield* until("the semaphore is told", () => held().length > 0)
      const [line] = held()
      assert.deepStrictEqual([line.kind, line.holders, line.permits], ["permit semaphore", [], 2])
      assert.isAtMost(line.leaseEnds, now + 60_000)
      assert.isAbove(line.lease, 300_000)
      yield* Effect.promise(() => redis.del(`{${name}}:timeout`))
      yield* until("its release is told", () =>
        events.some(({ data, event }) => event === "locks" && data.free.includes(name))
      )
    }
  )
})
