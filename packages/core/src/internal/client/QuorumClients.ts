import type { LockClient } from "./LockClient.ts"
import type { QuorumTimes } from "../options/quorumOptions.ts"

/** One lock of a quorum: a name at a client. */
export interface NamedMember {
  readonly client: LockClient
  readonly name: string
}

interface Quorum {
  readonly members: ReadonlyArray<LockClient>
  readonly times: QuorumTimes
  readonly driftFactor: number
  readonly client: LockClient
}

/** The clients of quorums that have the same first member. */
export class QuorumClients {
  /** Of locks that are called the same at all members: few, whatever the locks are called. */
  readonly #shared: Array<Quorum> = []
  /** Of locks with different keys at different clients: each has a client of its own, which finds them. */
  readonly #named = new Map<string, LockClient>()

  get all(): ReadonlyArray<LockClient> {
    return [...this.#shared.map(({ client }) => client), ...this.#named.values()]
  }

  get(
    members: ReadonlyArray<NamedMember>,
    times: QuorumTimes,
    driftFactor: number,
    make: (isShared: boolean) => LockClient
  ): LockClient {
    if (isShared(members)) {
      const known = this.#shared.find(
        (quorum) =>
          quorum.driftFactor === driftFactor &&
          quorum.times.memberTimeoutMillis === times.memberTimeoutMillis &&
          quorum.times.retryMillis === times.retryMillis &&
          quorum.members.length === members.length &&
          quorum.members.every((client, i) => client === members[i]!.client)
      )
      if (known !== undefined) return known.client
      const client = make(true)
      this.#shared.push({ members: members.map((member) => member.client), times, driftFactor, client })
      return client
    }
    const identity = JSON.stringify([members.map(({ client, name }) => [client.clientId, name]), times, driftFactor])
    let client = this.#named.get(identity)
    if (client === undefined) this.#named.set(identity, (client = make(false)))
    return client
  }
}

/** Whether the lock has the same name and key at all members. */
const isShared = (members: ReadonlyArray<NamedMember>): boolean => {
  const [first] = members as readonly [NamedMember]
  return members.every(
    ({ client, name }) => name === first.name && client.options.keyPrefix === first.client.options.keyPrefix
  )
}
