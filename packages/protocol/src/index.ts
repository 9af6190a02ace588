/**
 * Ids, events and errors of the Tackroom protocols. Messages of a wire family, and the pure rules of the wires, have
 * subpaths of their own: `/run`, `/scenario`, `/text`.
 *
 * @since 0.1.0
 */
export * from "./Ids.ts"
export * from "./events/index.ts"
export * from "./RuntimeErrors.ts"
