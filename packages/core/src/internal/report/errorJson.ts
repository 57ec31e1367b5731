import { causeJson } from "./causeText.ts"

/**
 * An error for logs in JSON: its fields and its message, which JSON otherwise leaves out. It is not an encoding: to send an
 * error somewhere, encode it with its schema.
 */
export const errorJson = (error: Error): Record<string, unknown> => {
  const fields: Record<string, unknown> = { ...error, message: error.message }
  if (error.cause !== undefined) fields["cause"] = causeJson(error.cause)
  return fields
}
