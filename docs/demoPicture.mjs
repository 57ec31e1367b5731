// Draws what the demo prints: `pnpm demo | node docs/demoPicture.mjs > docs/demo.svg`.
import { readFileSync } from "node:fs"

const cell = { width: 8, height: 18 }
const colours = {
  text: "#c9d1d9",
  bold: "#ffffff",
  good: "#56d364",
  bad: "#ff7b72",
  held: "#58a6ff",
  waiting: "#6e7681",
  dead: "#ff7b72"
}
const marks = { "█": [colours.held, 12, 1], "·": [colours.waiting, 2, 1], "░": [colours.dead, 12, 0.45] }

const lines = readFileSync(0, "utf8")
  .split("\n")
  // the first says which Redis, the progress is of no interest afterwards
  .filter((line) => !/^Redis:|of \d+ deposits$/.test(line))
const shown = [
  "$ pnpm demo",
  ...lines
    .join("\n")
    .trim()
    .replaceAll(/\n{3,}/g, "\n\n")
    .split("\n")
]

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
const colourOf = (line) =>
  /^(\$|\d\. )/.test(line)
    ? colours.bold
    : /^No deposit|: 0 lost/.test(line)
      ? colours.good
      : /lost\.|SIGKILL/.test(line)
        ? colours.bad
        : colours.text

const words = (text, column, y, colour) =>
  text.trim() === ""
    ? ""
    : `<text x="${column * cell.width}" y="${y}" fill="${colour}" textLength="${text.length * cell.width}" xml:space="preserve">${escaped(text)}</text>`

/** A row of the picture: neighbours of one mark become one bar, whatever the font. */
const bars = (line, y) =>
  [...line.matchAll(/(█+|·+|░+)/g)].map(({ 0: run, index }) => {
    const [colour, height, opacity] = marks[run[0]]
    return `<rect x="${index * cell.width}" y="${y - 4 - height / 2}" width="${run.length * cell.width}" height="${height}" fill="${colour}" opacity="${opacity}" />`
  })

const rows = shown.flatMap((line, index) => {
  const y = (index + 1) * cell.height
  const label = /^ +worker \d+ /.exec(line)?.[0]
  return label === undefined ? words(line, 0, y, colourOf(line)) : [words(label, 0, y, colours.text), ...bars(line, y)]
})
const width = Math.max(...shown.map((line) => line.length)) * cell.width + 32
const height = shown.length * cell.height + 32

console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The output of pnpm demo">
<rect width="100%" height="100%" rx="8" fill="#0d1117" />
<g transform="translate(16 8)" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13">
${rows.filter(Boolean).join("\n")}
</g>
</svg>`)
