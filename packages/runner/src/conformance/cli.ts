#!/usr/bin/env node
/** The program `tackroom-conformance`. */
import { refusedNode } from "@tackroom/sdk/process"
import { enableCompileCache } from "node:module"
import { main } from "./main.ts"

const refused = refusedNode(process.versions.node)
if (refused !== undefined) {
  process.stderr.write(`tackroom-conformance: ${refused}\n`)
  process.exit(1)
}
enableCompileCache()

// No top-level await: the program is bundled as CommonJS.
void main(process.argv.slice(2))
