/** The version of this program. */
import { packageVersion } from "@tackroom/sdk/process"

let known: string | undefined

export const version = (): string => {
  known ??= packageVersion("@tackroom/server", import.meta.dirname)
  return known
}
