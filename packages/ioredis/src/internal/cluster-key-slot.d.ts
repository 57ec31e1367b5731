declare module "cluster-key-slot" {
  /** The hash slot of a key. */
  const calculateSlot: (key: string) => number
  export default calculateSlot
}
