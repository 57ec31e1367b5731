/**
 * The files of the page: what the build has compiled, and what is served as it is.
 */
import { readdirSync, readFileSync } from "node:fs"
import { posix } from "node:path"

export interface Asset {
  readonly body: Uint8Array
  readonly contentType: string
}

// the same from dist/ui and from bundle/ui
const root = new URL("../../", import.meta.url)

const contentTypes: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml"
}

const assetIn = (file: string): Asset => ({
  body: readFileSync(new URL(file, root)),
  contentType: contentTypes[posix.extname(file)]!
})

/** All of them by their paths: nothing else can be read. Modules keep their places, as they import each other. */
export const readAssets = (): ReadonlyMap<string, Asset> => {
  const compiled = readdirSync(new URL("dist/ui/page/", root), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".js"))
    .map((file) => `ui/page/${file}`)
  return new Map([
    ["/", assetIn("src/ui/page/static/index.html")],
    ...["style.css", "icon.svg"].map((file) => [`/${file}`, assetIn(`src/ui/page/static/${file}`)] as const),
    ...[...compiled, "visible.js", "span.js"].map((file) => [`/${file}`, assetIn(`dist/${file}`)] as const)
  ])
}
