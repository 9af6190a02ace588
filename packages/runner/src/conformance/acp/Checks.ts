/** All checks of the family, in the order of a report. */
import type { AcpCheck } from "./AcpCheck.ts"
import { cancelChecks } from "./checks/Cancels.ts"
import { extensionChecks } from "./checks/Extensions.ts"
import { initializeChecks } from "./checks/Initialize.ts"
import { listChecks } from "./checks/Lists.ts"
import { messageChecks } from "./checks/Messages.ts"
import { optionChecks } from "./checks/Options.ts"
import { permissionChecks } from "./checks/Permissions.ts"
import { restoredChecks } from "./checks/Restored.ts"
import { sessionChecks } from "./checks/Sessions.ts"
import { serverChecks } from "./checks/Servers.ts"
import { shapeChecks } from "./checks/Shapes.ts"
import { transportChecks } from "./checks/Transport.ts"
import { turnChecks } from "./checks/Turns.ts"

export const acpChecks: ReadonlyArray<AcpCheck> = [
  ...initializeChecks,
  ...shapeChecks,
  ...transportChecks,
  ...messageChecks,
  ...sessionChecks,
  ...turnChecks,
  ...permissionChecks,
  ...cancelChecks,
  ...restoredChecks,
  ...listChecks,
  ...optionChecks,
  ...extensionChecks,
  ...serverChecks
]
