/**
 * Two sellers, each over another client, sell a hundred articles each of two hundred and ten. Ends with 1 unless ten are left.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Redis } from "ioredis"
import { url } from "./stock.ts"

const article = `lamp-${process.pid}`
const key = `left:${article}`
const client = new Redis(url)
await client.set(key, 210, "EX", 600)

const sellers = ["overIoredis.js", "overNodeRedis.js"].map((program) =>
  spawn(process.execPath, [fileURLToPath(new URL(program, import.meta.url)), article, "100"], {
    stdio: ["ignore", "inherit", "inherit"]
  })
)
const codes = await Promise.all(sellers.map(async (seller) => (await once(seller, "exit"))[0] as number | null))
const left = await client.get(key)
console.log(`210 lamps, 200 sold by two applications at the same time, ${left} left`)
if (left !== "10" || codes.some((code) => code !== 0)) process.exitCode = 1
await client.del(key)
await client.quit()
