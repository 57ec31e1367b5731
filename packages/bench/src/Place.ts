/** The servers on which a candidate runs. Plain data, for the processes that use and measure them. */
export interface Place {
  readonly system: "redis" | "mariadb" | "postgresql" | "zookeeper" | "etcd"
  readonly port: number
  /** Further servers, which form a quorum or an ensemble with the first. */
  readonly otherPorts: ReadonlyArray<number>
  /** Replicas of a Redis, whose CPU time counts. */
  readonly replicaPorts?: ReadonlyArray<number>
  /** The servers' processes: their CPU time counts, with that of their children. A Redis tells its own. */
  readonly processes?: ReadonlyArray<number>
}
