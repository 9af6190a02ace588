/**
 * Every numbered rule this workspace answers for. A test cites a rule at the end of its name, `[RUN-031]` or
 * `[RUN-031, RUN-032]`; a case of a contract kit cites it in its `rules` or its `id`. `requirements.test.ts` compares both.
 */
import { acpRules } from "./requirements/acp.ts"
import { agentRules } from "./requirements/agent.ts"
import { checkRules } from "./requirements/checks.ts"
import { harnessRules } from "./requirements/harness.ts"
import type { Requirement } from "./requirements/Requirement.ts"
import { rigRules } from "./requirements/rig.ts"
import { runRules } from "./requirements/run.ts"
import { runtimeRules } from "./requirements/runtime.ts"
import { seatRules } from "./requirements/seat.ts"
import { serveRules } from "./requirements/serve.ts"
import { storeRules } from "./requirements/store.ts"

export const requirements: ReadonlyArray<Requirement> = [
  ...runtimeRules,
  ...harnessRules,
  ...storeRules,
  ...runRules,
  ...agentRules,
  ...serveRules,
  ...acpRules,
  ...seatRules,
  ...rigRules,
  ...checkRules
]
