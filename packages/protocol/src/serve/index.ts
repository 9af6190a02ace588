/**
 * Serve mode: ops in, lines out, one JSON object per line (`@tackroom/protocol/serve`).
 *
 * A driver writes {@link encodeOp} and reads {@link decodeLine}; a program reads {@link readOp} and writes
 * {@link encodeLine}.
 *
 * @since 0.1.0
 */
export * from "./Capabilities.ts"
export * from "./Limits.ts"
export * from "./Line.ts"
export * from "./LineText.ts"
export * from "./Notify.ts"
export * from "./Op.ts"
export * from "./OpChecks.ts"
export * from "./OpReading.ts"
export * from "./Refusal.ts"
