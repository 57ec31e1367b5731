/**
 * Runs the scripts of `lua/` on a keyspace, as Redis runs them: with `redis.call`, `KEYS` and `ARGV`, and Redis's conversions of values.
 *
 * The interpreter has Lua 5.3's numbers, Redis has 5.1's, which are all floats: scripts write the factors of a multiplication as floats
 * (`1e3`), as the products of two integers would wrap around at 32 bits.
 */
import * as Effect from "effect/Effect"
import type { Reply } from "../../../RedisDriver.ts"
import type { Keyspace } from "./Keyspace.ts"
import { type CommandReply, runCommand } from "./redisCommands.ts"

let ready: RunScript | undefined

/** The interpreter of this process, at once if it is there. It is loaded where there is a memory store, and nowhere else. */
export const loadScripts: Effect.Effect<RunScript> = Effect.suspend(() =>
  ready === undefined
    ? Effect.map(Effect.promise(load), ({ default: fengari }) => (ready ??= makeRunScript(fengari)))
    : Effect.succeed(ready)
)

// @ts-expect-error it has no types of its own
const load = (): Promise<{ readonly default: Fengari }> => import("fengari")

/** Text as UTF-8, a byte in each character, as keyspaces have it. */
export const toBytes = (text: string): string =>
  isAscii.test(text) ? text : String.fromCharCode(...encoder.encode(text))

/** The reverse of {@link toBytes}; bytes that are no UTF-8 stay as they are. */
export const toText = (bytes: string): string => {
  if (isAscii.test(bytes)) return bytes
  try {
    return decoder.decode(Uint8Array.from(bytes, (char) => char.charCodeAt(0)))
  } catch {
    return bytes
  }
}

const isAscii = /^[\0-\x7f]*$/
const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })

const toLua = (bytes: string): LuaString => {
  const string = new Uint8Array(bytes.length)
  for (let i = 0; i < bytes.length; i++) string[i] = bytes.charCodeAt(i)
  return string
}

const ofLua = (string: LuaString): string => {
  let bytes = ""
  for (let i = 0; i < string.length; i++) bytes += String.fromCharCode(string[i]!)
  return bytes
}

/** What 5.3 has under other names, and Redis's own functions. */
const prelude = `
unpack = table.unpack
function math.frexp(x)
  if x == 0 then return 0, 0 end
  local exponent = math.floor(math.log(math.abs(x), 2)) + 1
  local fraction = x / 2 ^ exponent
  if fraction >= 1 then return fraction / 2, exponent + 1 end
  return fraction, exponent
end
function redis.error_reply(text) return { err = text } end
function redis.status_reply(text) return { ok = text } end
`

const names = { KEYS: toLua("KEYS"), ARGV: toLua("ARGV"), err: toLua("err"), ok: toLua("ok") }

/** Runs a script on a database; its error replies are thrown. */
export type RunScript = (
  db: Keyspace,
  source: string,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string>
) => Reply

/** Each script is compiled once. */
const makeRunScript = ({ lauxlib, lua, lualib }: Fengari): RunScript => {
  const L = lauxlib.luaL_newstate()
  /** By source. */
  const compiled = new Map<string, number>()
  /** The database of the script that runs. */
  let db: Keyspace
  /** The messages of the script that runs. */
  const published: Array<{ readonly channel: string; readonly text: string }> = []

  const compile = (source: string): void => orThrow(lauxlib.luaL_loadstring(L, toLua(source)))

  const call = (): void => orThrow(lua.lua_pcall(L, 0, 1, 0))

  /** Throws the error at the top of the stack, if that is what a status says. */
  const orThrow = (status: number): void => {
    if (status === 0) return
    const text =
      errorReply() ?? (lua.lua_type(L, -1) === lua.LUA_TSTRING ? ofLua(lua.lua_tostring(L, -1)) : "a script failed")
    lua.lua_pop(L, 1)
    throw new Error(toText(text))
  }

  /** The error reply at the top of the stack. */
  const errorReply = (): string | undefined => {
    if (lua.lua_type(L, -1) !== lua.LUA_TTABLE) return undefined
    const text = lua.lua_getfield(L, -1, names.err) === lua.LUA_TSTRING ? ofLua(lua.lua_tostring(L, -1)) : undefined
    lua.lua_pop(L, 1)
    return text
  }

  /** The reply at the top of the stack, as Redis converts it: numbers lose their fractions, an array ends before its first nil. */
  const take = (): Reply => {
    switch (lua.lua_type(L, -1)) {
      case lua.LUA_TNUMBER:
        return Math.trunc(lua.lua_tonumber(L, -1))
      case lua.LUA_TSTRING:
        return toText(ofLua(lua.lua_tostring(L, -1)))
      case lua.LUA_TBOOLEAN:
        return lua.lua_toboolean(L, -1) ? 1 : null
      case lua.LUA_TTABLE: {
        const error = errorReply()
        if (error !== undefined) throw new Error(toText(error))
        const items: Array<Reply> = []
        for (let i = 1, count = lua.lua_rawlen(L, -1); i <= count; i++) {
          lua.lua_rawgeti(L, -1, i)
          items.push(take())
          lua.lua_pop(L, 1)
        }
        return items
      }
      default:
        return null
    }
  }

  const push = (value: CommandReply | { readonly err: string }): void => {
    if (typeof value === "number") {
      if (Math.abs(value) < 2 ** 31) lua.lua_pushinteger(L, value)
      else lua.lua_pushnumber(L, value)
    } else if (typeof value === "string") {
      lua.lua_pushstring(L, toLua(value))
    } else if (value === false) {
      lua.lua_pushboolean(L, false)
    } else if ("ok" in value || "err" in value) {
      lua.lua_createtable(L, 0, 1)
      lua.lua_pushstring(L, toLua("ok" in value ? value.ok : value.err))
      lua.lua_setfield(L, -2, "ok" in value ? names.ok : names.err)
    } else {
      lua.lua_createtable(L, value.length, 0)
      value.forEach((item, i) => {
        push(item)
        lua.lua_rawseti(L, -2, i + 1)
      })
    }
  }

  /** The arguments of the function that is called. */
  const takeArguments = (): ReadonlyArray<string> =>
    Array.from({ length: lua.lua_gettop(L) }, (_, i) => {
      const type = lua.lua_type(L, i + 1)
      if (type === lua.LUA_TNUMBER) return numberText(lua.lua_tonumber(L, i + 1))
      if (type === lua.LUA_TSTRING) return ofLua(lua.lua_tostring(L, i + 1))
      throw new Error("ERR Command arguments must be strings or integers")
    })

  const runOrPublish = (args: ReadonlyArray<string>): CommandReply => {
    if (args[0] !== "PUBLISH") return runCommand(db, args)
    const [, channel, text] = args as readonly [string, string, string]
    published.push({ channel, text })
    return db.listeners(channel)
  }

  /** The functions `redis.call`, which raises errors, and `redis.pcall`, which returns them. */
  const command = (raises: boolean) => (): number => {
    try {
      push(runOrPublish(takeArguments()))
      return 1
    } catch (error) {
      push({ err: (error as Error).message })
      return raises ? lua.lua_error(L) : 1
    }
  }

  lualib.luaL_openlibs(L)
  lua.lua_createtable(L, 0, 4)
  for (const name of ["call", "pcall"]) {
    lua.lua_pushcfunction(L, command(name === "call"))
    lua.lua_setfield(L, -2, toLua(name))
  }
  lua.lua_setglobal(L, toLua("redis"))
  compile(prelude)
  call()
  lua.lua_pop(L, 1)

  return (on, source, keys, args) => {
    let script = compiled.get(source)
    if (script === undefined) {
      compile(source)
      script = lauxlib.luaL_ref(L, lua.LUA_REGISTRYINDEX)
      compiled.set(source, script)
    }
    push(keys.map(toBytes))
    lua.lua_setglobal(L, names.KEYS)
    push(args.map(toBytes))
    lua.lua_setglobal(L, names.ARGV)
    lua.lua_rawgeti(L, lua.LUA_REGISTRYINDEX, script)
    db = on
    try {
      call()
      return take()
    } finally {
      lua.lua_settop(L, 0)
      // only now: a listener may run a script at once
      for (const { channel, text } of published.splice(0)) on.publish(channel, text)
    }
  }
}

/** A number as Redis passes it to a command. */
const numberText = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? "inf" : value === Number.NEGATIVE_INFINITY ? "-inf" : String(value)

/** The state of an interpreter. */
interface LuaState {
  readonly __lua: never
}

type LuaString = Uint8Array

type LuaFunction = (L: LuaState) => number

/** The part of fengari, a Lua interpreter in JavaScript, that the memory store uses. */
interface Fengari {
  readonly lua: {
    readonly LUA_REGISTRYINDEX: number
    readonly LUA_TBOOLEAN: number
    readonly LUA_TNUMBER: number
    readonly LUA_TSTRING: number
    readonly LUA_TTABLE: number
    readonly lua_createtable: (L: LuaState, items: number, fields: number) => void
    readonly lua_error: (L: LuaState) => never
    readonly lua_getfield: (L: LuaState, index: number, name: LuaString) => number
    readonly lua_gettop: (L: LuaState) => number
    readonly lua_pcall: (L: LuaState, args: number, results: number, handler: number) => number
    readonly lua_pop: (L: LuaState, count: number) => void
    readonly lua_pushboolean: (L: LuaState, value: boolean) => void
    readonly lua_pushcfunction: (L: LuaState, f: LuaFunction) => void
    readonly lua_pushinteger: (L: LuaState, value: number) => void
    readonly lua_pushnumber: (L: LuaState, value: number) => void
    readonly lua_pushstring: (L: LuaState, value: LuaString) => void
    readonly lua_rawgeti: (L: LuaState, index: number, at: number) => number
    readonly lua_rawlen: (L: LuaState, index: number) => number
    readonly lua_rawseti: (L: LuaState, index: number, at: number) => void
    readonly lua_setfield: (L: LuaState, index: number, name: LuaString) => void
    readonly lua_setglobal: (L: LuaState, name: LuaString) => void
    readonly lua_settop: (L: LuaState, index: number) => void
    readonly lua_toboolean: (L: LuaState, index: number) => boolean
    readonly lua_tonumber: (L: LuaState, index: number) => number
    readonly lua_tostring: (L: LuaState, index: number) => LuaString
    readonly lua_type: (L: LuaState, index: number) => number
  }
  readonly lauxlib: {
    readonly luaL_loadstring: (L: LuaState, source: LuaString) => number
    readonly luaL_newstate: () => LuaState
    readonly luaL_ref: (L: LuaState, table: number) => number
  }
  readonly lualib: { readonly luaL_openlibs: (L: LuaState) => void }
}
