/**
 * `@tackroom/sdk/harnesses/serve`: the harness that drives any program of serve mode.
 *
 * @since 0.1.0
 */
export { serve, type ServeHarnessOptions } from "./ServeHarness.ts"
