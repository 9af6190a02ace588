import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { configDefaults, defineConfig } from "vitest/config"

/** Makes every connection that leaves this machine fail the test. */
const loopback = fileURLToPath(new URL("test/setup/loopback.ts", import.meta.url))

/** The program as people run it; from source where nothing is built. `pnpm test` builds first. */
const built = fileURLToPath(new URL("packages/host/dist/bin/tackroom.cjs", import.meta.url))
const program = existsSync(built) ? { TACKROOM_E2E_HOST: built } : {}
const builtRig = fileURLToPath(new URL("packages/server/dist/bin/tackroom-rig.cjs", import.meta.url))
const rig = existsSync(builtRig) ? { TACKROOM_E2E_RIG: builtRig } : {}

/** A file for the JSON report beside the usual one; `.ci/run` counts from it. */
const report = process.env["TACKROOM_TEST_REPORT"]

/** Real agents take minutes and 1.5 GB of programs: their project is there only for who asks for it. */
const realAgents = process.env["TACKROOM_REAL_AGENTS"] === "1"

const project = (name: string, root: string, options: Record<string, unknown> = {}) => ({
  extends: true as const,
  test: { name, root, include: ["test/**/*.test.ts"], setupFiles: [loopback], ...options }
})

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    passWithNoTests: true,
    // Half of the files wait for processes of their own most of the time.
    maxWorkers: 2,
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    projects: [
      project("protocol", "packages/protocol"),
      project("sdk", "packages/sdk"),
      project("host", "packages/host"),
      project("runner", "packages/runner"),
      project("server", "packages/server", { env: rig }),
      project("e2e", "test/e2e", {
        include: ["**/*.test.ts"],
        exclude: [...configDefaults.exclude, "agents/**"],
        testTimeout: 120_000,
        env: program
      }),
      ...(realAgents ? [project("agents", "test/e2e/agents", { include: ["*.test.ts"], testTimeout: 300_000 })] : [])
    ]
  }
})
