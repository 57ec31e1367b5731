/**
 * Names and owners as people see them, on a terminal and on the page of `redis-lock ui`.
 */

const spelled = (character: string): string => `\\u{${character.codePointAt(0)!.toString(16)}}`

/** Text that may contain names, shown or not: the same, in one line and without effect on the terminal. */
export const inert = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, spelled)

/** A name may contain any text: no character of it may end the line, move the cursor or colour the terminal. */
export const visible = (name: string): string =>
  name.replace(/[\\\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => (character === "\\" ? "\\\\" : spelled(character)))

/** The client of an owner, `<client>:<number>`. */
export const clientOf = (owner: string): string => owner.split(":", 1)[0]!

/** What the owner of a lock that its minHold keeps ends with. */
const kept = ":kept"

/** Released, but taken until its minHold is over. */
export const isKept = (owner: string): boolean => owner.endsWith(kept)

/** The owner without the mark of a kept lock: for one that is kept, whoever released it. */
export const releaserOf = (owner: string): string => (isKept(owner) ? owner.slice(0, -kept.length) : owner)

const longest = 60

/** A name within a sentence: in quotes, and no longer than people read. */
export const quoted = (name: string): string => {
  const characters = Array.from(name)
  return `"${characters.length > longest ? `${visible(characters.slice(0, longest).join(""))}...` : visible(name)}"`
}
