/** Rules that no test cites. Rewritten by `node test/e2e/requirements/update.ts`; give a true reason by hand. */
import type { Uncited } from "./Requirement.ts"

export const uncited: ReadonlyArray<Uncited> = []
