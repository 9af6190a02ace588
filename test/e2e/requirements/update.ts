/** Rewrites `uncited.ts` from what the tests cite now; a reason that was given by hand stays. */
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { requirements } from "../requirements.ts"
import { readCitations } from "./Citations.ts"
import { notYetCited } from "./Requirement.ts"
import { uncited } from "./uncited.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const cited = new Set(readCitations(root).cited.map((citation) => citation.id))
const reasons = new Map(uncited.map((entry) => [entry.id, entry.reason]))

const rows = requirements
  .filter((rule) => rule.open === undefined && !cited.has(rule.id))
  .map((rule) => {
    const reason = reasons.get(rule.id)
    return reason === undefined || reason === notYetCited
      ? `  { id: "${rule.id}", reason: notYetCited }`
      : `  { id: "${rule.id}", reason: ${JSON.stringify(reason)} }`
  })

// As the formatter would write it.
const list = rows.length === 0 ? "[]" : rows.length === 1 ? `[${rows.join("").trim()}]` : `[\n${rows.join(",\n")}\n]`
const imports = rows.some((row) => row.endsWith("notYetCited }"))
  ? `import { notYetCited, type Uncited } from "./Requirement.ts"`
  : `import type { Uncited } from "./Requirement.ts"`

writeFileSync(
  new URL("./uncited.ts", import.meta.url),
  `/** Rules that no test cites. Rewritten by \`node test/e2e/requirements/update.ts\`; give a true reason by hand. */
${imports}

export const uncited: ReadonlyArray<Uncited> = ${list}
`
)
process.stdout.write(`${rows.length} of ${requirements.length} rules are uncited\n`)
