/**
 * Names as people see them, on a terminal and on the page of `redis-lock ui`.
 */

/** A name may contain any text: no character of it may end the line, move the cursor or colour the terminal. */
export const visible = (name: string): string =>
  name.replace(/[\\\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character === "\\" ? "\\\\" : `\\u{${character.codePointAt(0)!.toString(16)}}`
  )
