/** The small host that the wire tests use, as a program. It is started, not imported: the sdk knows no host. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type ConnectOptions, type Host, launchHost } from "../../src/client/index.ts"

export const toyHostMain = fileURLToPath(new URL("../../../host/test/stdio/fixtures/toyHostMain.ts", import.meta.url))

export const temporary = (): { readonly path: string; readonly remove: () => void } => {
  const path = mkdtempSync(join(tmpdir(), "tackroom-client-"))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

export const launchToy = (
  stateDir: string,
  options: ConnectOptions & { readonly env?: Record<string, string> } = {}
): Promise<Host> => launchHost({ ...options, command: process.execPath, args: [toyHostMain], config: { stateDir } })
