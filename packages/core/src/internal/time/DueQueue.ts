/**
 * A priority queue by due time: a binary heap whose items know their index, so that any of them can be removed or moved in
 * logarithmic time. Holdings come and go far more often than they fall due, hence no lazy deletion.
 */
export interface Due {
  /** The due time on the monotonic clock, in milliseconds. */
  due: number
  /** Index in the heap, maintained by the queue; -1 when not queued. */
  heapIndex: number
}

export class DueQueue<A extends Due> {
  readonly #heap: Array<A> = []

  get first(): A | undefined {
    return this.#heap[0]
  }

  get size(): number {
    return this.#heap.length
  }

  /** All items, in no order. */
  get items(): ReadonlyArray<A> {
    return this.#heap
  }

  /** Adds an item, or moves it after its `due` has changed. */
  put(item: A): void {
    if (item.heapIndex === -1) {
      item.heapIndex = this.#heap.length
      this.#heap.push(item)
    }
    this.#settle(item)
  }

  remove(item: A): void {
    const place = item.heapIndex
    if (place === -1) return
    item.heapIndex = -1
    const last = this.#heap.pop()!
    if (last !== item) {
      last.heapIndex = place
      this.#heap[place] = last
      this.#settle(last)
    }
  }

  #settle(item: A): void {
    const heap = this.#heap
    let place = item.heapIndex
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (heap[parent]!.due <= item.due) break
      this.#move(heap[parent]!, place)
      place = parent
    }
    while (true) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.due < heap[child]!.due) child++
      if (heap[child]!.due >= item.due) break
      this.#move(heap[child]!, place)
      place = child
    }
    this.#move(item, place)
  }

  #move(item: A, place: number): void {
    this.#heap[place] = item
    item.heapIndex = place
  }
}
