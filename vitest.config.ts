import { defineConfig } from "vitest/config"

const project = (name: string, root: string, options: Record<string, unknown> = {}) => ({
  extends: true as const,
  test: { name, root, include: ["test/**/*.test.ts"], ...options }
})

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    passWithNoTests: true,
    projects: [
      project("protocol", "packages/protocol"),
      project("sdk", "packages/sdk"),
      project("host", "packages/host"),
      project("e2e", "test/e2e", { include: ["**/*.test.ts"], testTimeout: 120_000 })
    ]
  }
})
