import { NodeInspectSymbol } from "effect/Inspectable"

/** Makes all objects of a prototype print and log as the result of `show`: short, and without their internals. */
export const printsAs = <A extends object>(prototype: A, show: (self: A) => Record<string, unknown>): void => {
  const toJSON = function (this: A): unknown {
    return show(this)
  }
  Object.defineProperty(prototype, "toJSON", { value: toJSON })
  Object.defineProperty(prototype, NodeInspectSymbol, { value: toJSON })
}
