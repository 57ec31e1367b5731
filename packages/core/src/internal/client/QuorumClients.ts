import type { ClientOptions } from "../options/ClientOptions.ts"
import type { QuorumTimes } from "../options/quorumOptions.ts"

/** A client that may be a member. */
interface Member {
  readonly clientId: string
  readonly options: ClientOptions
}

/** One lock of a quorum: a name at a client. */
export interface NamedMember<Client> {
  readonly client: Client
  readonly name: string
}

interface Quorum<Client> {
  readonly members: ReadonlyArray<Client>
  readonly times: QuorumTimes
  readonly driftFactor: number
  readonly client: Client
}

/** The clients of quorums that have the same first member. */
export class QuorumClients<Client extends Member> {
  /** Of locks that are called the same at all members: few, whatever the locks are called. */
  readonly #shared: Array<Quorum<Client>> = []
  /** Of locks with different keys at different clients: each has a client of its own, which finds them. */
  readonly #named = new Map<string, Client>()

  get all(): ReadonlyArray<Client> {
    return [...this.#shared.map(({ client }) => client), ...this.#named.values()]
  }

  get(
    members: ReadonlyArray<NamedMember<Client>>,
    times: QuorumTimes,
    driftFactor: number,
    make: (isShared: boolean) => Client
  ): Client {
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
const isShared = (members: ReadonlyArray<NamedMember<Member>>): boolean => {
  const [first] = members as readonly [NamedMember<Member>]
  return members.every(
    ({ client, name }) => name === first.name && client.options.keyPrefix === first.client.options.keyPrefix
  )
}
