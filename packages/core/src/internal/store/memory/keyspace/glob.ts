const special = /[.+^${}()|\\/]/

/** The glob patterns of Redis: `*`, `?`, `[a-c]`, `[^a]`, and a backslash that escapes a character. */
export const globToRegExp = (pattern: string): RegExp => {
  let source = ""
  let inClass = false
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!
    if (char === "\\" && i + 1 < pattern.length) {
      source += pattern[++i]!.replace(/[^A-Za-z0-9]/, "\\$&")
    } else if (inClass) {
      inClass = char !== "]"
      source += char
    } else if (char === "[" && pattern.includes("]", i)) {
      inClass = true
      source += char
    } else if (char === "*") {
      source += "[^]*"
    } else if (char === "?") {
      source += "[^]"
    } else {
      source += special.test(char) || char === "[" || char === "]" ? `\\${char}` : char
    }
  }
  return new RegExp(`^${source}$`, "u")
}
