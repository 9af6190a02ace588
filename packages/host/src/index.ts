/**
 * `@tackroom/host`: the host that runs agents durably, for embedding. The command `tackroom` is its other entrance.
 */
export { embedHost, EmbeddedFailure, decodeConfiguration, type EmbeddedHost, type EmbedOptions } from "./EmbedHost.ts"
