/**
 * The subcommands that open a host. One module, because both are made of the same parts: those are bundled once and loaded
 * whole, and what only `run` needs is loaded by it.
 */
import type { headless as Headless } from "./headless/main.ts"

export { harnessStdio } from "./HarnessStdio.ts"

export const headless: typeof Headless = async (...args) => (await import("./headless/main.ts")).headless(...args)
