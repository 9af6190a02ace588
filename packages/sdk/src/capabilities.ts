export * from "./harness/Capabilities.ts"
