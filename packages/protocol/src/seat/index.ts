/**
 * The seat contract: how a runner and a rig service meet. Environment, preset, launch record, activity posts, permission
 * requests, errors and limits.
 *
 * @since 0.1.0
 */
export * from "./Activity.ts"
export * from "./CommandWords.ts"
export * from "./Decoding.ts"
export * from "./Environment.ts"
export * from "./LaunchRecord.ts"
export * from "./LaunchState.ts"
export * from "./Names.ts"
export * from "./Permission.ts"
export * from "./Preset.ts"
export * from "./RigRoutes.ts"
export * from "./RigViews.ts"
export * from "./RunnerReactions.ts"
export * from "./SeatErrors.ts"
export * from "./SeatLimits.ts"
