/**
 * What the compilers say of a wrong program, and what an editor shows of a right one: TypeScript 5.9 and 7.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript5"

const directory = fileURLToPath(new URL("../dist-messages", import.meta.url))
const require = createRequire(import.meta.url)

const imports = `import { Effect, Layer } from "effect"
import * as Locks from "effect-redis-lock"
const { CountDownLatch, FairLock, Lock, MultiLock, NonReentrantLock, PermitSemaphore, RedLock, RedisLock, Semaphore } = Locks
declare const body: Effect.Effect<number, "mine">
`

const doesNotExist = (option: string, type: string, meant: string) =>
  `Object literal may only specify known properties, but '${option}' does not exist in type '${type}'. Did you mean to write '${meant}'?`

/** For an option that resembles none. */
const doesNotExistAtAll = (option: string, type: string) =>
  `Object literal may only specify known properties, and '${option}' does not exist in type '${type}'.`

/** Of options that come before what they are for. */
const isNoOption = (option: string, type: string) =>
  `Type '${type}' is not assignable to type '"${option} is not an option"'.`

/** Wrong programs, and what both compilers say of them, whatever else they say. */
const wrong: Record<string, readonly [program: string, says: string]> = {
  "an option that is misspelt, in a section": [
    `body.pipe(Lock.withLock("a", { waitTme: "1 second" }))`,
    doesNotExist("waitTme", "AcquireOptions<undefined>", "waitTime")
  ],
  "an option that is misspelt, data-first": [
    `Lock.withLock(body, "a", { waitTme: "1 second" })`,
    doesNotExist("waitTme", "AcquireOptions<undefined>", "waitTime")
  ],
  "an option that is misspelt, for a scope": [
    `Lock.scoped("a", { waitTme: "1 second" })`,
    doesNotExist("waitTme", "AcquireOptions<undefined>", "waitTime")
  ],
  "an option that is misspelt, before the lock": [
    `Lock.make("a").pipe(Lock.scoped({ leaseTme: "1 second" }))`,
    isNoOption("leaseTme", '"1 second"')
  ],
  "an option that is misspelt beside a right one, before the lock": [
    `Lock.make("a").pipe(Lock.scoped({ waitTime: 1, typo: 2 }))`,
    isNoOption("typo", "number")
  ],
  "a waitTime beside a leaseTime before the lock, for a function that does not wait": [
    `Lock.make("a").pipe(Lock.tryScoped({ leaseTime: 1000, waitTime: 2 }))`,
    isNoOption("waitTime", "number")
  ],
  "an option that is misspelt beside a right one, before the effect": [
    `body.pipe(Lock.withLock("a", { waitTime: 1, typo: 2 }))`,
    doesNotExistAtAll("typo", "AcquireOptions<1>")
  ],
  "an option that is misspelt beside a right one, of a section without waiting": [
    `body.pipe(Lock.withLockIfAvailable("a", { leaseTime: 1000, typo: 2 }))`,
    `'typo' does not exist in type 'Pick<AcquireOptions<Input | undefined>, `
  ],
  "an option that is misspelt beside a right one, before a semaphore": [
    `PermitSemaphore.make("a").pipe(PermitSemaphore.scoped({ waitTime: 1, typo: 2 }))`,
    isNoOption("typo", "number")
  ],
  "a waitTime beside permits before a semaphore, for a function that does not wait": [
    `PermitSemaphore.make("a").pipe(PermitSemaphore.tryScoped({ permits: 1, waitTime: 2 }))`,
    isNoOption("waitTime", "number")
  ],
  "an option that is misspelt beside a right one, of a section with permits": [
    `body.pipe(PermitSemaphore.withPermits("a", 1, { waitTime: 1, typo: 2 }))`,
    doesNotExistAtAll("typo", "GrantOptions<1>")
  ],
  "a lease of anonymous permits": [
    `Semaphore.scoped("a", 1, { waitTime: 1, leaseTime: 2 })`,
    doesNotExistAtAll("leaseTime", "AcquireOptions<1>")
  ],
  "a lease of anonymous permits that nothing gives back": [
    `Semaphore.make("a").pipe(Semaphore.acquire(1, { waitTime: 1, leaseTime: 2 }))`,
    doesNotExistAtAll("leaseTime", "AcquireOptions<1>")
  ],
  "an option that is misspelt beside a right one, before a latch": [
    `CountDownLatch.make("a").pipe(CountDownLatch.await({ waitTime: 1, typo: 2 }))`,
    isNoOption("typo", "number")
  ],
  "an option of a lock that is misspelt": [
    `FairLock.make("a", { leseTime: "1 second" })`,
    doesNotExist("leseTime", 'AcquireOptions<undefined> & TokenOptions<"time">', "leaseTime")
  ],
  "an option of a latch that is misspelt": [
    `CountDownLatch.await("a", { waitTme: "1 second" })`,
    doesNotExist("waitTme", "AwaitOptions<undefined>", "waitTime")
  ],
  "an option of the layer that is misspelt": [
    `RedisLock.layer({ watchdogLease: "10 seconds" })`,
    doesNotExist("watchdogLease", "RedisLockOptions", "watchdogLeaseTime")
  ],
  "a waitTime for a function that does not wait": [
    `Lock.tryScoped("a", { waitTime: "1 second" })`,
    `'waitTime' does not exist in type 'Pick<AcquireOptions<Input | undefined>, `
  ],
  "a duration that is none": [
    `body.pipe(Lock.withLock("a", { waitTime: "1 secnd" }))`,
    `Type '"1 secnd"' is not assignable to type 'Input | undefined'.`
  ],
  "a layer that is missing": [
    `Effect.runPromise(body.pipe(Lock.withLock("a")))`,
    `Type 'RedisLock' is not assignable to type 'never'.`
  ],
  "a quorum of a lock of several": [
    `RedLock.make([MultiLock.make(["a", "b"])])`,
    `Type 'Readonly<Record<string, bigint>>' is not assignable to type 'bigint'.`
  ],
  "a quorum of names": [
    `RedLock.make(["a", "b", "c"])`,
    `Type 'string' is not assignable to type 'Lock<unknown, unknown, bigint>'.`
  ],
  "a quorum where a lock that cannot find too few servers is wanted": [
    `const use = (lock: Locks.Lock.Lock) => lock; use(RedLock.make([Lock.make("a")]))`,
    `Type 'QuorumNotReached' is not assignable to type 'never'.`
  ],
  "a lock that can time out where one that cannot is wanted": [
    `const use = (lock: Locks.Lock.Lock) => lock; use(Lock.make("a", { waitTime: "1 second" }))`,
    `Type 'LockTimeout' is not assignable to type 'never'.`
  ],
  "a token of a lock that has none": [
    `Effect.map(Lock.currentHolding(Lock.make("a", { tokens: "none" })), (holding) => holding.token)`,
    `Property 'token' does not exist on type 'HoldingWithoutToken'.`
  ],
  "a semaphore in place of a lock": [
    `Lock.scoped(Semaphore.make("a"))`,
    `Property '[TypeId]' is missing in type 'Semaphore<RedisLock>' but required in type 'Lock<unknown, unknown, unknown>'.`
  ],
  "a number of permits in place of options": [
    `PermitSemaphore.scoped("a", 2)`,
    `Type '2' has no properties in common with type 'ScopedOptions<undefined>'.`
  ],
  "a service made by hand": [
    `Layer.succeed(RedisLock.RedisLock, { clientId: "a" })`,
    `Property '[TypeId]' is missing in type '{ clientId: string; }' but required in type 'Service'.`
  ]
}

/** Programs, and what an editor shows of their result: the effect itself, with its failures one by one. */
const hovers: Record<string, string> = {
  'Lock.make("a")': "Lock<RedisLock, never, bigint>",
  'Lock.make("a", { waitTime: 1 })': "Lock<RedisLock, LockTimeout, bigint>",
  'Lock.scoped("a")':
    "Effect<Holding<bigint>, LockStoreError | InvalidLockName | InvalidLockOptions, RedisLock | Scope>",
  'Lock.scoped("a", { waitTime: 1 })':
    "Effect<Holding<bigint>, LockTimeout | LockStoreError | InvalidLockName | InvalidLockOptions, RedisLock | Scope>",
  'body.pipe(Lock.withLock("a"), Lock.orDieIfInvalid)': 'Effect<number, LockStoreError | LockLost | "mine", RedisLock>',
  'Lock.make("a").pipe(Lock.scoped({ waitTime: 1 }))':
    "Effect<Holding<bigint>, LockTimeout | LockStoreError | InvalidLockName | InvalidLockOptions, RedisLock | Scope>",
  'Semaphore.tryAcquire("a")': "Effect<boolean, LockStoreError | InvalidLockName | InvalidLockOptions, RedisLock>",
  'PermitSemaphore.make("a").pipe(PermitSemaphore.setPermits(2))':
    "Effect<void, LockStoreError | InvalidLockName | InvalidLockOptions, RedisLock>",
  'CountDownLatch.await("a", { waitTime: 1 })':
    "Effect<void, LockStoreError | InvalidLockName | InvalidLockOptions | LatchTimeout, RedisLock>"
}

const fileOf = (index: number) => `wrong${index}.ts`

const config = {
  extends: "../../tsconfig.base.json",
  compilerOptions: {
    composite: false,
    incremental: false,
    declaration: false,
    declarationMap: false,
    sourceMap: false,
    noEmit: true,
    noUnusedLocals: false
  },
  include: ["*.ts"]
}

beforeAll(() => {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config))
  Object.values(wrong).forEach(([program], index) => {
    writeFileSync(join(directory, fileOf(index)), `${imports}${program}\n`)
  })
  const lines = Object.keys(hovers).map((program, index) => `export const hover${index} = ${program}\n`)
  writeFileSync(join(directory, "hovers.ts"), imports + lines.join(""))
})

/** One program of TypeScript 5.9 for all that is asked of it, made when it is first needed. */
let programMade: ts.Program | undefined
const program = (): ts.Program => {
  if (programMade !== undefined) return programMade
  const { config } = ts.readConfigFile(join(directory, "tsconfig.json"), ts.sys.readFile)
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, directory)
  return (programMade = ts.createProgram(fileNames, options))
}

/** What TypeScript 5.9 says. */
const outputOf5 = async () =>
  ts.formatDiagnostics(ts.getPreEmitDiagnostics(program()), {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => directory,
    getNewLine: () => "\n"
  })

/** What TypeScript 7 says, which has no JavaScript API yet. */
const outputOf7 = () =>
  new Promise<string>((resolve) => {
    const bin = join(dirname(require.resolve("typescript/package.json")), "bin/tsc")
    execFile(process.execPath, [bin, "-p", ".", "--pretty", "false"], { cwd: directory }, (_error, stdout) =>
      resolve(stdout)
    )
  })

/** What a compiler says, by file. */
const byFile = (output: string): ReadonlyMap<string, string> => {
  const said = new Map<string, string>()
  for (const message of output.split(/^(?=\S)/m)) {
    const [, file] = /^(\w+\.ts)\(/.exec(message) ?? [undefined, "elsewhere"]
    said.set(file!, (said.get(file!) ?? "") + message)
  }
  return said
}

for (const [version, compiler, outputOf] of [
  ["5.9", "typescript5", outputOf5],
  ["7", "typescript", outputOf7]
] as const) {
  describe(`TypeScript ${version}`, () => {
    let said: ReadonlyMap<string, string> = new Map()
    beforeAll(async () => {
      assert.isTrue(require(`${compiler}/package.json`).version.startsWith(version))
      said = byFile(await outputOf())
    }, 600_000)

    it(`has nothing against the right programs (TypeScript ${version})`, () => {
      assert.isUndefined(said.get("hovers.ts"))
      assert.isUndefined(said.get("elsewhere"))
    })

    Object.entries(wrong).forEach(([title, [, says]], index) => {
      it(`says what is wrong with ${title} (TypeScript ${version})`, () => {
        assert.include(said.get(fileOf(index)), says)
      })
    })
  })
}

/** Without what depends on the imports of the program, or on the order in which types were made. */
const plain = (type: string): string =>
  type.replace(/import\("[^"]*"\)\./g, "").replace(/[^<>,|]+(?:\|[^<>,|]+)+/g, (union) => {
    const members = union.split("|").map((member) => member.trim())
    return ` ${members.toSorted().join(" | ")}`
  })

it("an editor shows an effect with its failures, and no alias of ours", () => {
  const file = join(directory, "hovers.ts")
  const types = program().getTypeChecker()
  const shown: Array<string> = []
  for (const { name } of program()
    .getSourceFile(file)!
    .statements.filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) => declarationList.declarations)) {
    if (!ts.isIdentifier(name) || !name.text.startsWith("hover")) continue
    shown.push(plain(types.typeToString(types.getTypeAtLocation(name), undefined, ts.TypeFormatFlags.NoTruncation)))
  }
  assert.deepStrictEqual(shown, Object.values(hovers).map(plain))
}, 600_000)
