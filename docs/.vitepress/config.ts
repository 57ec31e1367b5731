/**
 * The documentation site: `pnpm docs:dev` shows it, `pnpm docs:build` writes it to `docs/.vitepress/dist`.
 */
import { existsSync, readdirSync } from "node:fs"
import { posix } from "node:path"
import { fileURLToPath } from "node:url"
import { defineConfig, type DefaultTheme } from "vitepress"
import llmsTxt from "vitepress-plugin-llms"

const repository = "https://github.com/effect-redis-lock/effect-redis-lock"

const page = (text: string, link: string): DefaultTheme.SidebarItem => ({ text, link })

/** The pages that TypeDoc has written, by package. */
const api = (): ReadonlyArray<DefaultTheme.SidebarItem> => {
  const packages = [
    "effect-redis-lock",
    "@effect-redis-lock/ioredis",
    "@effect-redis-lock/cluster",
    "@effect-redis-lock/testing"
  ]
  return packages.map((name) => {
    const modules = fileURLToPath(new URL(`../api/${name}/namespaces`, import.meta.url))
    return {
      text: name,
      link: `/api/${name}/`,
      collapsed: true,
      items: (existsSync(modules) ? readdirSync(modules) : []).toSorted().map((file) => {
        const module = posix.basename(file, ".md")
        return page(module, `/api/${name}/namespaces/${module}`)
      })
    }
  })
}

export default defineConfig({
  title: "effect-redis-lock",
  description: "Distributed locks on Redis for Effect",
  lang: "en-GB",
  srcExclude: ["publishing.md"],
  base: process.env.DOCS_BASE ?? "/",
  cleanUrls: true,
  lastUpdated: true,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${process.env.DOCS_BASE ?? "/"}logo.svg` }]],

  vite: {
    plugins: [
      {
        // what the Lua interpreter of the playground asks of Node.js; on the development server `define` would also make a global
        // `process`, and the interpreter take the browser for Node.js
        name: "fengari",
        config: (_config, { command }) => {
          const define = { "process.env.FENGARICONF": "undefined" }
          return command === "build" ? { define } : { optimizeDeps: { esbuildOptions: { define } } }
        }
      },
      // llms.txt lists the pages; llms-full.txt contains them all, except those generated from docstrings
      llmsTxt({
        ignoreFiles: ["api/**", "behaviours.md", "publishing.md"],
        customTemplateVariables: {
          details:
            "Agents that write code with this library should read SKILL.md in the npm package `effect-redis-lock` first, then getting-started, guarantees, fencing and testing."
        }
      })
    ]
  },

  markdown: {
    // the default light theme is hard to read
    theme: { light: "github-light-high-contrast", dark: "github-dark" },
    config: (md) => {
      // what GitHub draws itself
      const fence = md.renderer.rules.fence!
      md.renderer.rules.fence = (tokens, index, ...rest) => {
        const { content, info } = tokens[index]!
        return info.trim() === "mermaid"
          ? `<Diagram source="${encodeURIComponent(content)}" />`
          : fence(tokens, index, ...rest)
      }
      // links out of docs/, and to files that are no pages, lead to the repository
      md.core.ruler.push("links_to_repository", ({ env, tokens }) => {
        for (const token of tokens) {
          for (const child of token.children ?? []) {
            const href = child.type === "link_open" ? child.attrGet("href") : null
            if (href === null || /^([a-z]+:|[#/])/.test(href) || env.relativePath === undefined) continue
            const path = posix.join("docs", posix.dirname(env.relativePath), href)
            if (!path.startsWith("docs/") || /\.(json|yaml)$/.test(path)) {
              child.attrSet("href", `${repository}/blob/main/${path}`)
            }
          }
        }
      })
    }
  },

  themeConfig: {
    logo: "/logo.svg",
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path`, text: "Edit this page" },
    outline: [2, 3],
    nav: [
      { text: "Getting started", link: "/getting-started" },
      { text: "Choosing a lock", link: "/choosing" },
      { text: "API", link: "/api/" }
    ],
    sidebar: [
      {
        text: "Start",
        items: [
          page("Getting started", "/getting-started"),
          page("Choosing a lock", "/choosing"),
          page("Connecting to Redis", "/connecting"),
          page("Without Effect", "/without-effect"),
          page("What can go wrong", "/errors"),
          page("Testing", "/testing"),
          page("Operations", "/operations"),
          page("Locks in a browser", "/ui"),
          page("Servers", "/servers"),
          page("Runtimes and clients", "/runtimes"),
          page("Telemetry", "/telemetry")
        ]
      },
      {
        text: "Primitives",
        items: [
          page("Lock", "/primitives/lock"),
          page("FairLock", "/primitives/fair-lock"),
          page("ReadWriteLock", "/primitives/read-write-lock"),
          page("FencedLock", "/primitives/fenced-lock"),
          page("SpinLock", "/primitives/spin-lock"),
          page("NonReentrantLock", "/primitives/non-reentrant-lock"),
          page("MultiLock", "/primitives/multi-lock"),
          page("RedLock", "/primitives/red-lock"),
          page("PermitSemaphore", "/primitives/permit-semaphore"),
          page("Semaphore", "/primitives/semaphore"),
          page("CountDownLatch", "/primitives/count-down-latch"),
          page("Elections, singletons, schedules, run-once", "/coordination")
        ]
      },
      {
        text: "Correctness",
        items: [
          page("Guarantees and limits", "/guarantees"),
          page("Failure and fencing", "/fencing"),
          page("Failover", "/failover"),
          page("Quorums", "/quorum"),
          page("Contention", "/contention"),
          page("Running a job once", "/running-once"),
          page("Runs under faults", "/faults"),
          page("The specification", "/specification"),
          page("Track record", "/track-record")
        ]
      },
      {
        text: "How to",
        items: [
          page("Sharing with Java", "/redisson"),
          page("Effect's cluster", "/cluster"),
          page("Memory in Redis", "/memory")
        ]
      },
      {
        text: "Migrating",
        items: [
          page("What changes", "/migrating/"),
          page("From redlock 4 and 5", "/migrating/redlock"),
          page("From redis-semaphore", "/migrating/redis-semaphore"),
          page("From redlock-universal", "/migrating/redlock-universal"),
          page("From effect-distributed-lock", "/migrating/effect-distributed-lock"),
          page("From Redisson", "/migrating/redisson"),
          page("From SET NX", "/migrating/set-nx"),
          page("From Effect's own Semaphore", "/migrating/local-semaphore")
        ]
      },
      {
        text: "Background",
        items: [
          page("Compared with other libraries", "/comparison"),
          page("Benchmarks", "/benchmarks"),
          page("Compared with other systems", "/compared-systems"),
          page("Architecture", "/architecture"),
          page("Stability", "/stability"),
          page("Redisson's behaviours", "/behaviours")
        ]
      },
      { text: "API", items: [...api()] }
    ]
  }
})
