/** How many entries may be deleted before the Map is replaced, beyond as many as there are. */
const leastDeletions = 16

/**
 * A Map through which many entries pass. V8 gives a Map a new table again and again, and the old table refers to the new one. A table that
 * has reached the old generation thus keeps all later ones alive, and their entries, until the next full collection. A new Map now and then
 * ends that.
 */
export class PassingMap<K, V> {
  #entries = new Map<K, V>()
  #deletions = 0

  get size(): number {
    return this.#entries.size
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  set(key: K, value: V): void {
    this.#entries.set(key, value)
  }

  delete(key: K): void {
    if (!this.#entries.delete(key) || ++this.#deletions < leastDeletions + this.#entries.size) return
    this.#entries = new Map(this.#entries)
    this.#deletions = 0
  }

  keys(): ReadonlyArray<K> {
    return [...this.#entries.keys()]
  }
}
