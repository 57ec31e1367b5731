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
          for (const error of event.errors) yield* sayLines(formatCliError(error))
          yield* say(`usage: ${withUsage(event.helpDoc).usage}`)
          yield* say(`more: ${event.commandPath.join(" ")} --help`)
        })
    }
  }
}
