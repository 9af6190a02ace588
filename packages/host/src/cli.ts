#!/usr/bin/env node
/**
 * The program `tackroom`. Its first instruction turns on Node's compile cache; everything else is loaded after it, and
 * only what the chosen subcommand needs.
 */
import { enableCompileCache } from "node:module"

enableCompileCache()

const { main } = await import("./command/main.ts")
await main(process.argv.slice(2))
