#!/usr/bin/env node
/** The program `tackroom-rig`. It turns on Node's compile cache before it loads what the command needs. */
import { enableCompileCache } from "node:module"
import { main } from "./command/main.ts"

enableCompileCache()

// No top-level await: the program is bundled as CommonJS.
void main(process.argv.slice(2))
