/**
 * What every store must do for every kind of lock, as one text: run on memory under virtual time and on Redis in real time.
 */
import { describe } from "@effect/vitest"
import { type Backend, type Contract, contractOf, type Kind } from "./suite/contract.ts"
import { excluding } from "./suite/excluding.ts"
import { fairness } from "./suite/fair.ts"
import { fencing } from "./suite/fenced.ts"
import { input } from "./suite/input.ts"
import { fair, fenced, nonReentrant, nonReentrantFair, reentrant, spin, write } from "./suite/kinds.ts"
import { leases } from "./suite/leases.ts"
import { keeping } from "./suite/minHold.ts"
import { looking } from "./suite/looking.ts"
import { wrongKinds } from "./suite/names.ts"
import { refusing } from "./suite/nonReentrant.ts"
import { sharing } from "./suite/readWrite.ts"
import { reentry } from "./suite/reentry.ts"
import { releasing } from "./suite/releasing.ts"
import { serving } from "./suite/serving.ts"
import { spinning } from "./suite/spin.ts"
import { tokens } from "./suite/tokens.ts"
import { trying } from "./suite/trying.ts"
import { waiting } from "./suite/waiting.ts"

type Topic = (contract: Contract) => void

const common: ReadonlyArray<Topic> = [
  excluding,
  tokens,
  reentry,
  trying,
  waiting,
  serving,
  leases,
  releasing,
  keeping,
  input,
  looking
]

const own = new Map<Kind, ReadonlyArray<Topic>>([
  [reentrant, [wrongKinds]],
  [fair, [fairness]],
  [fenced, [fencing]],
  [spin, [spinning]],
  [nonReentrant, [refusing]],
  [nonReentrantFair, [refusing, fairness]],
  [write, [sharing]]
])

export const contract = (backend: Backend, kind: Kind): void => {
  // Virtual time is shared by all tests of a suite; real time passes for all at once.
  const group = backend.time === "virtual" ? describe : describe.concurrent
  group(`${kind.name} on ${backend.name}`, () => {
    const contract = contractOf(backend, kind)
    for (const topic of [...common, ...(own.get(kind) ?? [])]) topic(contract)
  })
}
