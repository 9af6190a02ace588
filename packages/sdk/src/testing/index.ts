/**
 * Contract kits for stores and harness drivers (`@tackroom/sdk/testing`). Lists of cases that any test runner can run.
 *
 * @since 0.1.0
 */
export * from "./harnessContract.ts"
export * from "./storeContract.ts"
export { sessionOf } from "./storeContractKit.ts"
