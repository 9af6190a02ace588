#!/usr/bin/env node
/** The program `tackroom-conformance`. */
import { enableCompileCache } from "node:module"
import { main } from "./main.ts"

enableCompileCache()

// No top-level await: the program is bundled as CommonJS.
void main(process.argv.slice(2))
