/**
 * `node test/e2e/agents/install.ts`: installs the pinned agents that are not there yet, outside the repository. It needs
 * the network and the workspace's Node, since npm silently picks an older version for an older Node.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { agents, type Agent, installationOf, installations } from "./Agents.ts"

const install = (agent: Agent): void => {
  const target = installationOf(agent)
  const isThere = existsSync(target)
  process.stdout.write(`${agent.package}@${agent.version} ${isThere ? "is in" : "goes to"} ${target}\n`)
  if (isThere) return
  mkdirSync(installations, { recursive: true })
  const folder = mkdtempSync(join(installations, ".install-"))
  try {
    writeFileSync(join(folder, "package.json"), '{"private":true}\n')
    execFileSync(
      "npm",
      [
        "install",
        "--ignore-scripts",
        "--save-exact",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        // What npm keeps would be as large again.
        `--cache=${join(folder, ".npm")}`,
        `${agent.package}@${agent.version}`
      ],
      {
        cwd: folder,
        stdio: ["ignore", "inherit", "inherit"],
        env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}` }
      }
    )
    if (!existsSync(join(folder, "node_modules", agent.program))) {
      throw new Error(`${agent.package} has no ${agent.program} on this platform`)
    }
    rmSync(join(folder, ".npm"), { recursive: true, force: true })
    renameSync(folder, target)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

for (const agent of agents) install(agent)
