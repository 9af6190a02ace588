/** Writes `docs/activity.md`. */
import { writeFileSync } from "node:fs"
import { diagram } from "./Diagram.ts"

writeFileSync(new URL("../docs/activity.md", import.meta.url), diagram())
