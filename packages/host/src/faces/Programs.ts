/**
 * The subcommands that open a host. One module, because all are made of the same parts: those are bundled once and loaded
 * whole, and what only one of them needs is loaded by it.
 */
import type { acp as Acp } from "./acp/main.ts"
import type { headless as Headless } from "./headless/main.ts"
import type { serve as Serve } from "./serve/main.ts"

export { harnessStdio } from "./HarnessStdio.ts"

export const headless: typeof Headless = async (...args) => (await import("./headless/main.ts")).headless(...args)

export const serve: typeof Serve = async (...args) => (await import("./serve/main.ts")).serve(...args)

export const acp: typeof Acp = async (...args) => (await import("./acp/main.ts")).acp(...args)
