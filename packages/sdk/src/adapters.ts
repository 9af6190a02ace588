/**
 * For those who write a harness driver or host one (`@tackroom/sdk/adapters`, advanced): the driver contract, the reducer of
 * events, and the coalescer.
 *
 * @since 0.1.0
 */
export * from "./harness/Harness.ts"
export * from "./harness/Frames.ts"
export * from "./harness/TurnFibers.ts"
export { noCapabilities, type HarnessCapabilities } from "./harness/Capabilities.ts"
export { projectEvent, type RowChange, type TurnContext } from "./store/Projection.ts"
export { Coalescer, coalesceDefaults, type CoalesceOptions } from "./runtime/Coalescer.ts"
