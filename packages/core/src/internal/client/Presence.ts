/**
 * What a client that holds or waits has to do with others beside its locks: it tells who it is, and hears what is taken from it.
 */
import { ForcedReleases, type TakenFrom } from "./ForcedReleases.ts"
import { type LabelledClient, OwnLabel } from "./OwnLabel.ts"

export class Presence {
  readonly #ownLabel: OwnLabel
  readonly #forcedReleases: ForcedReleases

  constructor(client: LabelledClient & TakenFrom) {
    this.#ownLabel = new OwnLabel(client)
    this.#forcedReleases = new ForcedReleases(client)
  }

  /** The client holds or waits from now on. */
  begin(): void {
    this.#ownLabel.tell()
    this.#forcedReleases.heed()
  }
}
