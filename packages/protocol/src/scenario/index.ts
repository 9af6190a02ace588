/**
 * The scenario file that scripted models and scripted harnesses play.
 *
 * @since 0.1.0
 */
export * from "./Scenario.ts"
