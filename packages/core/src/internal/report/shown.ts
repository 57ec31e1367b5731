const longest = 60

/** A caller's value for a message: short, and for an object only its type. */
export const shown = (value: unknown): string => {
  if (typeof value === "string") {
    return JSON.stringify(value.length > longest ? `${value.slice(0, longest)}...` : value)
  }
  if (value === null || typeof value !== "object") return typeof value === "function" ? "a function" : String(value)
  const { name } = (value.constructor ?? Object) as { readonly name?: unknown }
  return typeof name === "string" && name !== "" ? `a value of type ${name}` : "an object"
}
