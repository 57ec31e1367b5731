import { existsSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fourLetters } from "./fourLetters.ts"
import type { Server } from "./Server.ts"
import { ensemble, findProgram, freePorts, serverDirectory, type ServerProcess, startServer } from "./serverProcess.ts"

/** Where Debian puts it. */
const jar = "/usr/share/java/zookeeper.jar"

const zookeeper = (setting: string, count: number, settings: ReadonlyArray<string>): Server => ({
  setting,
  missing: async () =>
    existsSync(jar) && (await findProgram("java")) !== undefined
      ? undefined
      : "there is no ZooKeeper here: apt-get install zookeeper",
  start: async () => {
    const ports = await freePorts(count * 3)
    const clientPorts = ports.slice(0, count)
    const members = clientPorts.map(
      (_, i) => `server.${i + 1}=127.0.0.1:${ports[count + i]}:${ports[2 * count + i]};127.0.0.1:${clientPorts[i]}`
    )
    const processes: Array<Promise<ServerProcess>> = []
    for (const [i, port] of clientPorts.entries()) {
      const directory = await serverDirectory("zookeeper")
      await writeFile(join(directory, "myid"), String(i + 1))
      await writeFile(
        join(directory, "zoo.cfg"),
        [
          ...["tickTime=2000", "initLimit=10", "syncLimit=5", `dataDir=${directory}`, "maxClientCnxns=0"],
          ...["admin.enableServer=false", "4lw.commands.whitelist=mntr", ...settings],
          ...(count === 1 ? [`clientPort=${port}`, "clientPortAddress=127.0.0.1"] : members)
        ].join("\n")
      )
      processes.push(
        startServer({
          program: (await findProgram("java"))!,
          directory,
          args: [
            ...["-Xmx512m", "-cp", jar, "org.apache.zookeeper.server.quorum.QuorumPeerMain"],
            join(directory, "zoo.cfg")
          ],
          isReady: async () => {
            if (!(await fourLetters(port, "mntr")).includes("zk_server_state")) throw new Error("not serving yet")
          }
        })
      )
    }
    const running = await Promise.all(processes)
    const version = /zk_version\s+([\d.]+)/.exec(await fourLetters(clientPorts[0]!, "mntr"))?.[1]
    return ensemble("zookeeper", `ZooKeeper ${version}`, clientPorts, running)
  }
})

export const zookeeperDurable = zookeeper("three servers, `forceSync=yes`", 3, [])
export const zookeeperFast = zookeeper("one server, `forceSync=no`", 1, ["forceSync=no"])
