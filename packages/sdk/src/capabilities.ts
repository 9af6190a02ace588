/**
 * What a harness can do (`@tackroom/sdk/capabilities`).
 *
 * @since 0.1.0
 */
import type { HarnessCapabilities } from "./harness/Capabilities.ts"
export { noCapabilities, type HarnessCapabilities, type InstructionChannel } from "./harness/Capabilities.ts"

/** A capability of the adapter itself, beside those of its harness. */
export type AdapterCapability = "runtime-config"

/** Whether a harness's options can change while a session exists (`runtime-config`). */
export const hasAdapterCapability = (capabilities: HarnessCapabilities, capability: AdapterCapability): boolean =>
  capability === "runtime-config" && capabilities.configOptions
