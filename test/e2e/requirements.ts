/**
 * Every numbered rule this workspace answers for. A test cites a rule at the end of its name, `[RUN-031]` or
 * `[RUN-031, RUN-032]`; a case of a contract kit cites it in its `rules` or its `id`. `requirements.test.ts` compares both.
 */
import { agentRules } from "./requirements/agent.ts"
import { harnessRules } from "./requirements/harness.ts"
import type { Requirement } from "./requirements/Requirement.ts"
import { runRules } from "./requirements/run.ts"
import { runtimeRules } from "./requirements/runtime.ts"
import { storeRules } from "./requirements/store.ts"

export const requirements: ReadonlyArray<Requirement> = [
  ...runtimeRules,
  ...harnessRules,
  ...storeRules,
  ...runRules,
  ...agentRules
]
