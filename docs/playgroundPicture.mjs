// Draws a run of the playground: `pnpm build && node docs/playgroundPicture.mjs > docs/paused.svg`.
import { letters, fromQuery } from "../packages/playground/dist/faults.js"
import { load } from "../packages/playground/dist/Network.js"
import { World } from "../packages/playground/dist/World.js"

await load()

const run = fromQuery("seed=8&faults=3200-pause-A_8200-resume-A")
const [from, to] = [2000, 10_000]
const [left, width, lane, top] = [110, 760, 30, 56]
const colours = { A: "#3b6fd4", B: "#c77700", C: "#0f8a6c" }
const x = (millis) => (left + ((Math.min(to, Math.max(from, millis)) - from) / (to - from)) * width).toFixed(1)

const bar = (span, row, height, fill, opacity = 1) => {
  const [begin, end] = [x(span.from), x(span.to ?? to)]
  return end === begin
    ? ""
    : `<rect x="${begin}" width="${(end - begin).toFixed(1)}" y="${row * lane + (lane - height) / 2}" height="${height}" fill="${fill}" opacity="${opacity}"/>`
}

const mark = (at, row, text, colour) =>
  `<line x1="${x(at)}" x2="${x(at)}" y1="${row * lane + 2}" y2="${row * lane + lane - 2}" stroke="${colour}" stroke-width="4"/>` +
  `<text x="${Number(x(at)) - 10}" y="${row * lane + lane / 2 + 4}" text-anchor="end" fill="#fff" font-weight="600">${text}</text>`

const panel = (kind, title, y) => {
  const world = new World(kind, run)
  world.advanceTo(to)
  const { happenings, holders, ledger, members } = world
  const rows = letters.flatMap((letter, row) => [
    `<text x="24" y="${row * lane + lane / 2 + 4}" fill="#1f2328">process ${letter}</text>`,
    ...members[letter].states.map((span) =>
      span.what === "inside"
        ? bar(span, row, 18, colours[letter])
        : span.what === "waiting"
          ? bar(span, row, 3, colours[letter], 0.5)
          : ""
    ),
    ...members[letter].stops.map((span) => bar(span, row, 24, "#656d76", 0.5))
  ])
  const overwrote = happenings.find((one) => one.kind === "overwrote")
  const lost = happenings.find((one) => one.kind === "lost")
  return [
    `<g transform="translate(0 ${y})">`,
    `<text x="24" y="24" font-size="15" font-weight="600" fill="#1f2328">${title}</text>`,
    `<text x="${left + width}" y="24" text-anchor="end" fill="${ledger.lost > 0 ? "#c0152f" : "#18794e"}" font-weight="600">${ledger.accepted} deposits, balance ${ledger.balance}: ${ledger.lost} lost</text>`,
    `<g transform="translate(0 36)">`,
    ...rows,
    `<text x="24" y="${3 * lane + lane / 2 + 4}" fill="#656d76">Redis says</text>`,
    ...holders.map((span) => bar(span, 3, 10, colours[span.what], 0.75)),
    overwrote === undefined ? "" : mark(overwrote.at, 0, `wakes up and overwrites ${ledger.lost} deposits`, "#c0152f"),
    lost === undefined
      ? ""
      : mark(lost.at, 0, "wakes up: its section fails with LockLost and writes nothing", "#1f2328"),
    "</g></g>"
  ]
}

const height = top + 2 * (4 * lane + 60) + 24
console.log(
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 ${height}" width="900" height="${height}" font-size="13" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif" role="img">`,
    "<title>A process is paused inside its section for longer than its lease</title>",
    `<rect width="900" height="${height}" rx="8" fill="#fff"/>`,
    `<text x="24" y="30" font-size="17" font-weight="600" fill="#1f2328">A process is paused inside its section for longer than its lease</text>`,
    ...panel("set-nx", "SET NX, lease of 3 s", top - 8),
    ...panel("library", "effect-redis-lock, lease of 3 s, renewed", top + 4 * lane + 52),
    `<text x="24" y="${height - 14}" fill="#656d76">thin: waits · thick: inside · grey: paused. Virtual time; three processes that read a balance, wait for a bank, and write it back plus 1.</text>`,
    "</svg>"
  ]
    .filter(Boolean)
    .join("\n")
)
