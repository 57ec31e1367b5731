/**
 * A list whose items know their neighbours: adding at either end and removing any item take constant time. A `Set` slows
 * down once most items at its front have been removed.
 */
export interface Linked<A> {
  /** Its neighbours, kept by the list. */
  before: A | undefined
  behind: A | undefined
}

export class LinkedList<A extends Linked<A>> {
  first: A | undefined = undefined
  #last: A | undefined = undefined

  add(item: A): void {
    item.before = this.#last
    if (this.#last === undefined) this.first = item
    else this.#last.behind = item
    this.#last = item
  }

  addFirst(item: A): void {
    item.behind = this.first
    if (this.first === undefined) this.#last = item
    else this.first.before = item
    this.first = item
  }

  /** Removes an item, which must be in the list. */
  remove(item: A): void {
    const { before, behind } = item
    if (before === undefined) this.first = behind
    else before.behind = behind
    if (behind === undefined) this.#last = before
    else behind.before = before
    item.before = item.behind = undefined
  }
}
