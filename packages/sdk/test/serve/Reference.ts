/** The smallest program of serve mode, as a program. It is started, not imported. */
import { fileURLToPath } from "node:url"

export const referenceMain = fileURLToPath(
  new URL("../../../runner/src/conformance/serve/reference/main.ts", import.meta.url)
)
