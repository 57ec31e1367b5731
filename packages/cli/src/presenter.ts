/**
 * Prints the output of effect/cli: requested help on stdout, errors of usage on stderr.
 */
import * as CliOutput from "effect/cli/CliOutput"
import type { HelpDoc } from "effect/cli/HelpDoc"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { say, sayLines } from "./say.ts"

/** Annotates a command with its usage line where the derived one is wrong. */
export const Usage = Context.Reference<string | undefined>("@effect-redis-lock/cli/Usage", {
  defaultValue: () => undefined
})

const withUsage = (doc: HelpDoc): HelpDoc => ({ ...doc, usage: Context.get(doc.annotations, Usage) ?? doc.usage })

/** Without the rest of what was typed, if that is long. */
const shortened = (text: string): string => text.replaceAll(/"([^"]{60})[^"]{40,}"/g, '"$1..."')

export const presenter: CliOutput.Presenter = {
  present: (event) => {
    switch (event._tag) {
      case "Version":
        return Console.log(`${event.name} ${event.version}`)
      case "Help": {
        const help = CliOutput.defaultFormatter().formatHelpDoc(withUsage(event.helpDoc))
        return event.reason === "Requested" ? Console.log(help) : Console.error(help)
      }
      case "InvalidInvocation":
        return Effect.gen(function* () {
          const { formatCliError } = CliOutput.defaultFormatter()
          // the others follow from the first: what does not fit behind a flag is taken for more flags
          const [first] = event.errors
          if (first !== undefined) yield* sayLines(shortened(formatCliError(first)))
          yield* say(`usage: ${withUsage(event.helpDoc).usage}`)
          yield* say(`more: ${event.commandPath.join(" ")} --help`)
        })
    }
  }
}
