/**
 * Vitest 5 reports failures with `Map.groupBy`, which Node 20 has not; everything else of it runs there.
 */
const groupBy = <K, T>(items: Iterable<T>, keyOf: (item: T, index: number) => K): Map<K, Array<T>> => {
  const groups = new Map<K, Array<T>>()
  let index = 0
  for (const item of items) {
    const key = keyOf(item, index++)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

const map = Map as unknown as { groupBy?: typeof groupBy }
map.groupBy ??= groupBy
