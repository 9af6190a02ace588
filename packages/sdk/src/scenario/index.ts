/**
 * `@tackroom/sdk/scenario`: the engine and the built-in scenarios behind both scripted things, the provider api `script`
 * and the harness `scripted` (D-15). The file's schema is `@tackroom/protocol/scenario`.
 *
 * @since 0.1.0
 */
export * from "./BuiltIn.ts"
export * from "./Load.ts"
export * from "./Player.ts"
export * from "./Steps.ts"
