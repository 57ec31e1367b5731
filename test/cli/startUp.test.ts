import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { bin } from "./redisLock.ts"
import { freshName } from "../kit/names.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"

/** Writes the peak of a Node.js process to its stderr, in MB. */
const tellPeak = `data:text/javascript,process.on("exit",()=>process._rawDebug(process.resourceUsage().maxRSS/1024))`

/**
 * The peak of the memory of a Node.js process that runs this: MB, the least of five, as the collector and malloc take more by chance. A shell
 * starts it: Linux counts the memory of whoever starts a process as that of the process, and here that is a worker with many tests.
 */
const peakOf = (...args: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const peaks: Array<number> = []
    for (let i = 0; i < 5; i++) {
      const { stderr } = await promisify(execFile)(
        "/bin/sh",
        ["-c", '"$@"; exit $?', "sh", process.execPath, "--import", tellPeak, ...args],
        {
          env: { ...process.env, REDIS_URL: redisUrl, REDIS_QUORUM: undefined }
        }
      )
      peaks.push(Number(stderr))
    }
    return Math.min(...peaks)
  })

/** Newer versions take more for the same code. */
const most = process.versions.node.startsWith("20.") ? 24 : 32

describe("start-up", () => {
  // tests of the single files have nothing to say here: Node.js loads several hundred of them
  it.live.skipIf(!bin.endsWith("/bundle/redis-lock.js"))(
    "A command under a lock costs at most 24 MB beyond Node.js itself, 32 from Node 22 on",
    () =>
      Effect.gen(function* () {
        const own = (yield* peakOf(bin, "run", freshName("cli"), "--", "true")) - (yield* peakOf("--eval", ""))
        assert.isAbove(own, 0)
        assert.isAtMost(own, most)
      })
  )
})
