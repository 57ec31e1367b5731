/**
 * Tests of types, which `tsc -b test` checks; `pnpm test` runs it first.
 */
import { expectTypeOf, it } from "@effect/vitest"

/** Only the types matter: nothing of it is run. */
export const types = (title: string, check: () => void) => it(title, () => expectTypeOf(check).toBeFunction())
