import { defineConfig } from "tsdown"

// One file per program and chunks for what is loaded later: a bundled program starts in a fraction of the time.
export default defineConfig({
  entry: { tackroom: "src/cli.ts" },
  outDir: "dist/bin",
  format: "esm",
  platform: "node",
  target: "node22.19",
  clean: true,
  dts: false,
  sourcemap: false,
  minify: false,
  treeshake: true,
  outExtensions: () => ({ js: ".mjs" }),
  deps: { alwaysBundle: [/.*/], neverBundle: ["better-sqlite3"], onlyBundle: false }
})
