import { defineConfig } from "tsdown"

// One CommonJS file for what every command needs; the service itself is a chunk that only `serve` loads.
export default defineConfig({
  entry: { "tackroom-rig": "src/rig/cli.ts" },
  outDir: "dist/bin",
  format: "cjs",
  platform: "node",
  target: "node22.19",
  clean: true,
  dts: false,
  sourcemap: false,
  minify: true,
  treeshake: true,
  outExtensions: () => ({ js: ".cjs" }),
  outputOptions: { dynamicImportInCjs: false },
  deps: { alwaysBundle: [/.*/], neverBundle: ["better-sqlite3"], onlyBundle: false }
})
