import type { ClientOptions, QuorumTimes } from "../options/ClientOptions.ts"

/** The part of a client that identifies it as a member. */
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
  readonly client: Client
}

/** The quorum clients that have the same first member. */
export class QuorumClients<Client extends Member> {
  /** For locks with the same name at all members: one client serves all such names. */
  readonly #shared: Array<Quorum<Client>> = []
  /** For locks whose keys differ between members: one client per set of names. */
  readonly #named = new Map<string, Client>()

  get all(): ReadonlyArray<Client> {
    return [...this.#shared.map(({ client }) => client), ...this.#named.values()]
  }

  get(members: ReadonlyArray<NamedMember<Client>>, times: QuorumTimes, make: (isShared: boolean) => Client): Client {
    if (isShared(members)) {
      const known = this.#shared.find(
        (quorum) =>
          quorum.times.memberTimeoutMillis === times.memberTimeoutMillis &&
          quorum.times.retryMillis === times.retryMillis &&
          quorum.members.length === members.length &&
          quorum.members.every((client, i) => client === members[i]!.client)
      )
      if (known !== undefined) return known.client
      const client = make(true)
      this.#shared.push({ members: members.map((member) => member.client), times, client })
      return client
    }
    const identity = JSON.stringify([members.map(({ client, name }) => [client.clientId, name]), times])
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
