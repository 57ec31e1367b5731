/**
 * The playground as a page of its own: bundled for browsers, as the site does it, and served.
 */
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"

const module = fileURLToPath(import.meta.resolve("@effect-redis-lock/playground/page/playground"))
const css = module.replace("/dist/", "/src/").replace(/\.js$/, ".css")

const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Playground</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/playground.css">
<style>.dark { background: #1b1b1f; color: #dfdfd6; --vp-c-bg: #1b1b1f; --vp-c-bg-soft: #202127; --vp-c-text-1: #dfdfd6;
--vp-c-text-2: #98989f; --vp-c-divider: #2e2e32; --vp-c-brand-1: #a8b1ff }</style></head>
<body><main><h1>Playground</h1><h2>Two locks</h2><div class="playground"></div></main>
<script type="module">import { mount } from "/playground.js"
await mount(document.querySelector(".playground"))</script></body></html>`

const bundle = async () => {
  const build = await rolldown({
    input: module,
    platform: "browser",
    // what the Lua interpreter asks of Node.js: it does without
    transform: { define: { "process.env.FENGARICONF": "undefined" } },
    plugins: [
      {
        name: "node",
        resolveId: (id) => (/^(fs|os|path|child_process|tmp|readline-sync|crypto)$/.test(id) ? `\0${id}` : null),
        load: (id) => (id.startsWith("\0") && !id.includes("rolldown") ? "export default {}" : null)
      }
    ]
  })
  const { output } = await build.generate({ format: "esm", codeSplitting: false })
  await build.close()
  return output[0].code
}

let bundled: Promise<string> | undefined

/** Serves it until the scope closes. */
export const servePlayground = Effect.gen(function* () {
  const files: Readonly<Record<string, readonly [string, string]>> = {
    "/": ["text/html", page],
    "/playground.js": ["text/javascript", yield* Effect.promise(() => (bundled ??= bundle()))],
    "/playground.css": ["text/css", readFileSync(css, "utf8")]
  }
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer(({ url = "/" }, response) => {
        const [type, text] = files[new URL(url, "http://localhost").pathname] ?? ["text/plain", ""]
        response.writeHead(text === "" ? 404 : 200, { "content-type": type }).end(text)
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
})
