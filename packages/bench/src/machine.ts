import { createRequire } from "node:module"
import { cpus, platform } from "node:os"

export interface Machine {
  readonly hardware: string
  readonly node: string
  readonly redis: string
  readonly ioredis: string
  readonly effect: string
}

const versionOf = (name: string): string => {
  const { version } = createRequire(import.meta.url)(`${name}/package.json`) as { readonly version: string }
  return version
}

const systems: Readonly<Record<string, string>> = { linux: "Linux", darwin: "macOS", win32: "Windows" }
const architectures: Readonly<Record<string, string>> = { x64: "x86-64", arm64: "ARM64" }

export const describeMachine = (redis: string): Machine => ({
  hardware: `${cpus().length} vCPU ${architectures[process.arch] ?? process.arch}, ${systems[platform()] ?? platform()}`,
  node: process.versions.node,
  redis,
  ioredis: versionOf("ioredis"),
  effect: versionOf("effect")
})
