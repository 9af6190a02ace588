/** Where the host keeps its state when nobody says otherwise. Pure. */
import { stateHome, type Machine } from "@tackroom/sdk/process"
import * as path from "node:path"

/** The state directory of the host. */
export const hostState = (machine: Machine): string => path.join(stateHome(machine), "host")
