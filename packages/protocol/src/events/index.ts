/**
 * The canonical events, interactions and rows of the runtime, as schemas.
 *
 * @since 0.1.0
 */
export * from "./Content.ts"
export * from "./Event.ts"
export * from "./Interaction.ts"
export * from "./Session.ts"
