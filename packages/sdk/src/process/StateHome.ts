/** Where the programs of the family keep their state when nobody says otherwise (D-42). Pure. */
import { join, isAbsolute, resolve } from "node:path"

export interface Machine {
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
}

const value = (machine: Machine, name: string): string | undefined => {
  const found = machine.env[name]
  return found === undefined || found === "" ? undefined : found
}

/** The home of the whole family: `TACKROOM_HOME`, else the platform's directory for state. */
export const stateHome = (machine: Machine): string => {
  const given = value(machine, "TACKROOM_HOME")
  if (given !== undefined) return resolve(given)
  switch (machine.platform) {
    case "darwin":
      return join(machine.home, "Library", "Application Support", "tackroom")
    case "win32":
      return join(value(machine, "LOCALAPPDATA") ?? join(machine.home, "AppData", "Local"), "tackroom")
    default: {
      const xdg = value(machine, "XDG_STATE_HOME")
      return join(xdg !== undefined && isAbsolute(xdg) ? xdg : join(machine.home, ".local", "state"), "tackroom")
    }
  }
}
