/**
 * Addresses of the machine itself.
 */
import { isIPv4 } from "node:net"

/** Whether only this machine can reach what listens there. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."))
