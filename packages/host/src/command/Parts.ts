/** What the program loads by subcommand. The built program has `BuiltParts.ts` in the place of this module. */
export const programs = (_use: "acp" | "harness-stdio" | "run" | "serve") => import("../faces/Programs.ts")

export const toolRunner = () => import("../tools/main.ts")
