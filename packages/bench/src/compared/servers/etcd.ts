import type { Server } from "./Server.ts"
import { ensemble, findProgram, freePorts, serverDirectory, startServer } from "./serverProcess.ts"

const read = async (port: number, path: string): Promise<string> => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`)
  if (!answer.ok) throw new Error(`etcd answers ${answer.status}`)
  return answer.text()
}

const etcd = (setting: string, count: number, settings: ReadonlyArray<string>): Server => ({
  setting,
  missing: async () =>
    (await findProgram("etcd")) === undefined ? "there is no etcd here: apt-get install etcd-server" : undefined,
  start: async () => {
    const program = (await findProgram("etcd"))!
    const ports = await freePorts(count * 2)
    const clientPorts = ports.slice(0, count)
    const peer = (i: number) => `http://127.0.0.1:${ports[count + i]}`
    const members = clientPorts.map((_, i) => `member${i}=${peer(i)}`).join(",")
    const running = await Promise.all(
      clientPorts.map(async (port, i) => {
        const directory = await serverDirectory("etcd")
        const client = `http://127.0.0.1:${port}`
        return startServer({
          program,
          directory,
          args: [
            ...["--name", `member${i}`, "--data-dir", `${directory}/data`],
            ...["--listen-client-urls", client, "--advertise-client-urls", client],
            ...["--listen-peer-urls", peer(i), "--initial-advertise-peer-urls", peer(i), "--initial-cluster", members],
            ...["--logger", "zap", "--log-level", "error", ...settings]
          ],
          isReady: () =>
            read(port, "/health").then((health) => {
              if (!health.includes(`"true"`)) throw new Error(health)
            })
        })
      })
    )
    const { etcdserver } = JSON.parse(await read(clientPorts[0]!, "/version")) as { readonly etcdserver: string }
    return ensemble("etcd", `etcd ${etcdserver}`, clientPorts, running)
  }
})

export const etcdDurable = etcd("three members", 3, [])
export const etcdFast = etcd("one member, `--unsafe-no-fsync`", 1, ["--unsafe-no-fsync"])
