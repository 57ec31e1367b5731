/**
 * What the benchmark's pictures share: colours, text, the frame.
 */

export const ink = "#1f2328"
export const faint = "#656d76"
export const ourColour = "#8250df"
export const bareColour = "#8c959f"

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

/** Coordinates need one decimal at most. */
const rounded = (coordinate: number): number => Number(coordinate.toFixed(1))

export const text = (x: number, y: number, content: string, attributes: string): string =>
  `<text x="${rounded(x)}" y="${rounded(y)}" ${attributes}>${escape(content)}</text>`

export interface Picture {
  readonly width: number
  readonly height: number
  /** For those who cannot see it. */
  readonly title: string
  readonly heading: string
  readonly margin: number
  readonly parts: ReadonlyArray<string>
}

export const picture = ({ heading, height, margin, parts, title, width }: Picture): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif" role="img">
<title>${escape(title)}</title>
<rect width="${width}" height="${height}" rx="8" fill="#fff"/>
${text(margin, 28, heading, `font-size="17" font-weight="600" fill="${ink}"`)}
${parts.join("\n")}
</svg>
`
