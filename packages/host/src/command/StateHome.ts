/** Where this program keeps its state when nobody says otherwise (D-42). Pure. */
import * as path from "node:path"

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
  if (given !== undefined) return path.resolve(given)
  switch (machine.platform) {
    case "darwin":
      return path.join(machine.home, "Library", "Application Support", "tackroom")
    case "win32":
      return path.join(value(machine, "LOCALAPPDATA") ?? path.join(machine.home, "AppData", "Local"), "tackroom")
    default: {
      const xdg = value(machine, "XDG_STATE_HOME")
      return path.join(
        xdg !== undefined && path.isAbsolute(xdg) ? xdg : path.join(machine.home, ".local", "state"),
        "tackroom"
      )
    }
  }
}

/** The state directory of the host. */
export const hostState = (machine: Machine): string => path.join(stateHome(machine), "host")
