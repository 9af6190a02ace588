/**
 * `@tackroom/sdk/harnesses/host`: the harness that drives an agent of any run-protocol host.
 *
 * @since 0.1.0
 */
export type { HostAccess } from "./HostConnection.ts"
export { host, type HostHarnessOptions } from "./HostHarness.ts"
