import { credentials, loadPackageDefinition, type ServiceClientConstructor } from "@grpc/grpc-js"
import { loadSync } from "@grpc/proto-loader"
import { fileURLToPath } from "node:url"
import type { Library } from "../../Candidate.ts"
import { inSessions } from "./sessions.ts"

const proto = (file: string): string => fileURLToPath(new URL(`../../../proto/${file}`, import.meta.url))

interface Api {
  readonly etcdserverpb: { readonly Lease: ServiceClientConstructor }
  readonly v3lockpb: { readonly Lock: ServiceClientConstructor }
}

/**
 * etcd's lock service, which runs the recipe of its `concurrency` package: a key of the lease's owner, and a watch on the one
 * before it. Each holder and each waiter keeps a lease alive.
 */
export const candidate: Library = {
  insideScripts: [],
  open: async ({ leaseMillis, port }) => {
    const api = loadPackageDefinition(
      loadSync([proto("lease.proto"), proto("lock.proto")], { longs: String, keepCase: true })
    ) as unknown as Api
    const address = `127.0.0.1:${port}`
    const leases = new api.etcdserverpb.Lease(address, credentials.createInsecure())
    const locks = new api.v3lockpb.Lock(address, credentials.createInsecure())
    const call = <A>(client: typeof locks, method: string, request: object): Promise<A> =>
      new Promise((resolve, reject) => {
        client[method]!(request, (error: Error | null, answer: A) => (error === null ? resolve(answer) : reject(error)))
      })
    const keepAlive = leases["LeaseKeepAlive"]!()
    keepAlive.on("data", () => {})
    keepAlive.on("error", () => {})
    return inSessions<string>({
      open: async () => {
        const { ID } = await call<{ readonly ID: string }>(leases, "LeaseGrant", { TTL: Math.ceil(leaseMillis / 1000) })
        setInterval(() => keepAlive.write({ ID }), leaseMillis / 3)
        return ID
      },
      take: async (lease, name) => {
        const { key } = await call<{ readonly key: Buffer }>(locks, "Lock", { name: Buffer.from(name), lease })
        return () => call(locks, "Unlock", { key })
      }
    })
  }
}
