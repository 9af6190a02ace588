/**
 * Every harness factory of this package (`@tackroom/sdk/harnesses`). Importing it loads no harness's own SDK (RT-002).
 *
 * @since 0.1.0
 */
export * from "./acp/index.ts"
export * from "./host/index.ts"
export * from "./scripted/index.ts"
export * from "./serve/index.ts"
