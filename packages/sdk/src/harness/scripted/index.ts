/**
 * `@tackroom/sdk/harnesses/scripted`: the harness that plays scenarios and recordings.
 *
 * @since 0.1.0
 */
export type { Fixture } from "./Fixture.ts"
export { scripted, type ScriptedOptions } from "./ScriptedHarness.ts"
