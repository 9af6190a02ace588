/**
 * Pure rules of the wires: splitting, scanning, cutting, naming, redacting and writing text. No I/O, no Node API.
 *
 * @since 0.1.0
 */
export * from "./CanonicalJson.ts"
export * from "./EditDistance.ts"
export * from "./JsonPointer.ts"
export * from "./JsonDepth.ts"
export * from "./JsonScan.ts"
export * from "./Lines.ts"
export * from "./Redaction.ts"
export * from "./TerminalText.ts"
export * from "./Utf8.ts"
export * from "./WellFormed.ts"
export * from "./WireJson.ts"
export * from "./WireNames.ts"
