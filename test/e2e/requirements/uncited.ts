/** Rules that no test cites. Rewritten by `node test/e2e/requirements/update.ts`; give a true reason by hand. */
import { notYetCited, type Uncited } from "./Requirement.ts"

export const uncited: ReadonlyArray<Uncited> = [
  { id: "RT-335", reason: notYetCited },
  { id: "HRN-007", reason: notYetCited },
  { id: "HRN-008", reason: notYetCited },
  { id: "HRN-010", reason: notYetCited },
  { id: "HRN-040", reason: notYetCited },
  { id: "HRN-260", reason: notYetCited },
  { id: "RUN-039", reason: notYetCited },
  { id: "RUN-040", reason: notYetCited },
  { id: "RUN-089", reason: notYetCited },
  { id: "RUN-094", reason: notYetCited },
  { id: "RUN-095", reason: notYetCited },
  { id: "RUN-191", reason: notYetCited },
  { id: "RUN-470", reason: notYetCited },
  { id: "RUN-575", reason: notYetCited },
  { id: "AGT-112", reason: notYetCited }
]
