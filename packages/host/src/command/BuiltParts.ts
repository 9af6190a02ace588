/**
 * The parts of the built program, each one file beside it: the build puts this module in the place of `Parts.ts`. Each use
 * of a part has compiled code of its own, because it needs other functions of it.
 */
import { getCompileCacheDir } from "node:module"
import * as path from "node:path"
import { loadPart } from "./CodeCache.ts"

const load = (name: string, use: string): unknown =>
  loadPart({ file: path.join(import.meta.dirname, name), use, directory: getCompileCacheDir() })

export const programs = async (use: "acp" | "harness-stdio" | "run" | "serve") =>
  load("host.cjs", use) as typeof import("../faces/Programs.ts")

export const toolRunner = async () => load("tool-runner.cjs", "tool-runner") as typeof import("../tools/main.ts")
