/** CRC-16/XMODEM of every byte. */
const makeTable = (): Uint16Array =>
  Uint16Array.from({ length: 256 }, (_, byte) => {
    let crc = byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
    return crc
  })

// Made for the first key of a cluster: made at once, it would have V8 load its optimizing compiler (3 MB) into every process.
let made: Uint16Array | undefined

const SLOTS = 16384

const utf8 = new TextEncoder()

/**
 * The hash slot of a key: of the part between the first `{` and the next `}`, or of the whole key if that part is empty.
 *
 * Not cluster-key-slot, which ioredis uses: it takes `{}` for a tag if other braces follow (`{}}`).
 */
export const hashSlot = (key: string): number => {
  const table = (made ??= makeTable())
  let from = 0
  let to = key.length
  const open = key.indexOf("{")
  if (open >= 0) {
    const close = key.indexOf("}", open + 1)
    if (close > open + 1) {
      from = open + 1
      to = close
    }
  }
  let crc = 0
  for (let i = from; i < to; i++) {
    const code = key.charCodeAt(i)
    if (code > 127) return hashBytes(table, utf8.encode(key.slice(from, to)))
    crc = ((crc << 8) & 0xffff) ^ table[(crc >> 8) ^ code]!
  }
  return crc % SLOTS
}

const hashBytes = (table: Uint16Array, bytes: Uint8Array): number => {
  let crc = 0
  for (const byte of bytes) crc = ((crc << 8) & 0xffff) ^ table[(crc >> 8) ^ byte]!
  return crc % SLOTS
}
