/** What the native agent does not offer, as the driver contract wants it said (HRN-001). */
import { UnsupportedOperation } from "@tackroom/protocol"
import { Effect } from "effect"

export const unsupported = (operation: string) =>
  Effect.fail(new UnsupportedOperation({ harness: "native", operation }))
