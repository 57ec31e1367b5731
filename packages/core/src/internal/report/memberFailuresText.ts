import { storeReasons } from "./storeReasons.ts"

interface MemberFailure {
  readonly member: string
  readonly reason: keyof typeof storeReasons
  readonly message: string
}

/** The failures of a quorum's members, grouped by reason; without repeating a text. */
export const memberFailuresText = (all: ReadonlyArray<MemberFailure>): string => {
  const reasons = new Map<MemberFailure["reason"], Map<string, Array<string>>>()
  for (const { member, message, reason } of all) {
    const texts = reasons.get(reason) ?? new Map<string, Array<string>>()
    reasons.set(reason, texts.set(message, [...(texts.get(message) ?? []), member]))
  }
  const failures = [...reasons].map(([reason, texts]) => {
    const members = [...texts].map(([message, members]) => `${members.join(", ")} (${message})`)
    return ` ${members.join(", ")}: ${storeReasons[reason]}.`
  })
  return failures.join("")
}
