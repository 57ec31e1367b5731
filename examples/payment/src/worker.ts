/**
 * A process that makes one payment: `worker.js ACCOUNT AMOUNT [stubborn]`. It says "asking" when it asks the bank, whose answer is a
 * line on its standard input. A stubborn one is like code that cannot be interrupted: it goes on after the loss of its lock.
 */
import { Console, Effect, Layer, References } from "effect"
import { Lock } from "effect-redis-lock"
import { createInterface } from "node:readline/promises"
import { lockOf, pay } from "./payment.ts"
import { database, locks } from "./services.ts"

const [account = "", amount = "", manner] = process.argv.slice(2)

const bank = createInterface({ input: process.stdin })
// When main.ts dies, the input ends, and `question` never settles: without this, the worker would hold the lock forever.
const hungUp = new Promise<never>((_, reject) => bank.once("close", () => reject(new Error("the bank has hung up"))))
hungUp.catch(() => {})
const askBank = Effect.andThen(
  Console.log("asking"),
  Effect.promise((signal) => Promise.race([bank.question("", { signal }), hungUp]))
)

const payment = pay(account, BigInt(amount), askBank).pipe(
  Effect.tapError((error) => Console.log(error.message)),
  Effect.tap((left) => Console.log(`paid ${amount}, ${left} are left`))
)

const program = (manner === "stubborn" ? Effect.uninterruptible(payment) : payment).pipe(
  Lock.withLock(lockOf(account), { waitTime: "30 seconds" }),
  Effect.catchTag("LockLost", (lost) => Console.log(lost.message)),
  // What fails has been printed. A service would fail here, and run under NodeRuntime.runMain, which releases the lock at SIGTERM.
  Effect.ignore,
  Effect.ensuring(Effect.sync(() => bank.close())),
  Effect.provide(Layer.merge(locks, database)),
  Effect.provideService(References.MinimumLogLevel, "Error")
)

await Effect.runPromise(program)
