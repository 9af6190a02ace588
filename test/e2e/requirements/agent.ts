/** Rules AGT- of the native agent. One entry a rule, grouped by section. */
import type { Requirement } from "./Requirement.ts"

const web = "comes with the web tools"
const reviewer = "comes with the reviewer mode"
const sandbox = "comes with the OS sandbox"
const compaction = "comes with compaction"
const teams = "comes with teams"
const memory = "comes with memory"
const schedules = "comes with schedules"

export const agentRules: ReadonlyArray<Requirement> = [
  // 19 Native agent: model loop
  { id: "AGT-001", title: "a turn is rounds until a response without calls" },
  { id: "AGT-002", title: "a request is built from definition and journal alone" },
  { id: "AGT-003", title: "a response is durable before its calls" },
  { id: "AGT-004", title: "approvals are raised together; reads run in parallel, the rest in order" },
  { id: "AGT-005", title: "an unknown tool or bad arguments are not run" },
  { id: "AGT-006", title: "passing faults are retried, refusals fail at once" },
  { id: "AGT-007", title: "the fallback model takes over once, with a notice" },
  { id: "AGT-008", title: "a refused key fails without retry" },
  { id: "AGT-009", title: "a cut response is truncated" },
  { id: "AGT-010", title: "an empty response completes the turn" },
  { id: "AGT-011", title: "usage is journaled once per response" },
  { id: "AGT-012", title: "a long result reaches the model as head and tail" },
  { id: "AGT-013", title: "a response holds a bounded number of calls" },
  // 20 Tools
  { id: "AGT-030", title: "an agent sees its tools and no other" },
  { id: "AGT-031", title: "qualified tool names have one form" },
  { id: "AGT-032", title: "aliases are derived, bounded and fixed" },
  { id: "AGT-033", title: "a dispatch is on record first and ends once" },
  { id: "AGT-034", title: "five categories; internal tools never ask" },
  { id: "AGT-035", title: "an end tells tool and outcome by itself" },
  {
    id: "AGT-036",
    title: "results of MCP and applications are rendered for the model",
    remains: "outputs of applications come with them"
  },
  { id: "AGT-060", title: "paths stay inside the workspace, symlinks resolved" },
  { id: "AGT-061", title: "the state directory and devices are out of reach" },
  { id: "AGT-062", title: "writes replace whole files" },
  { id: "AGT-063", title: "a digest that does not match changes nothing" },
  { id: "AGT-064", title: "writes journal a diff" },
  { id: "AGT-065", title: "file and shell tools run in the runner" },
  { id: "AGT-070", title: "a command runs in its own group without terminal or state" },
  { id: "AGT-071", title: "time-out and cancel end the whole group" },
  { id: "AGT-072", title: "a nonzero exit is an output; carriage returns are folded" },
  { id: "AGT-080", title: "only public addresses are fetched", open: web },
  { id: "AGT-081", title: "redirects are checked and nothing of ours is sent", open: web },
  {
    id: "AGT-082",
    title: "the search endpoint is the app's choice",
    remains: "the search itself comes with the web tools"
  },
  // 21 Approvals
  { id: "AGT-110", title: "modes differ in what leaves a record" },
  { id: "AGT-111", title: "a host approval happens once, at once, journaled before dispatch" },
  {
    id: "AGT-112",
    title: "what the host cannot approve is asked, nothing stalls",
    open: "storing an approval is not retried for 30 s in the background; a failed read of the policy asks a person"
  },
  { id: "AGT-113", title: "the host's approval path is out of reach of requests" },
  { id: "AGT-114", title: "a reviewer approves by exact form or a person is asked", open: reviewer },
  { id: "AGT-115", title: "the reviewer's model and usage are the run's", open: reviewer },
  { id: "AGT-116", title: "what was approved is what is dispatched" },
  { id: "AGT-120", title: "a grant covers one tool, session and binding" },
  { id: "AGT-121", title: "a changed binding asks again" },
  { id: "AGT-122", title: "the policy is part of the session" },
  // 22 Sandbox
  { id: "AGT-150", title: "three walls and an honest default", open: sandbox },
  { id: "AGT-151", title: "the wall holds files, shell and network", open: sandbox },
  { id: "AGT-152", title: "a wall is proved before the session exists", open: sandbox },
  { id: "AGT-153", title: "only agents with file or shell tools need a wall", open: sandbox },
  { id: "AGT-154", title: "a lost wall stops tools, nothing runs open", open: sandbox },
  {
    id: "AGT-155",
    title: "runner output is checked as data",
    remains: "the check behind a wall comes with the OS sandbox"
  },
  { id: "AGT-156", title: "MCP servers stay outside the wall" },
  // 23 Planning, questions, compaction, budgets
  { id: "AGT-180", title: "questions of one response are pending together" },
  {
    id: "AGT-190",
    title: "compaction starts by fullness and mode",
    remains: "the summary itself comes with compaction"
  },
  { id: "AGT-191", title: "the compaction question has three answers", open: compaction },
  { id: "AGT-192", title: "compaction leaves the journal whole", open: compaction },
  {
    id: "AGT-193",
    title: "an overflow compacts once, else truncated",
    remains: "the repeated step comes with compaction"
  },
  { id: "AGT-194", title: "the window is the provider's, else a default" },
  { id: "AGT-200", title: "budgets count rounds, tokens and time without people" },
  { id: "AGT-201", title: "a spent budget fails with the text so far" },
  { id: "AGT-202", title: "failures come from one closed table" },
  // 24 Teams
  { id: "AGT-220", title: "a board change commits with its tool end", open: teams },
  { id: "AGT-221", title: "deliveries have one life, consumed by an admission", open: teams },
  { id: "AGT-222", title: "a delivery is consumed once over crashes", open: teams },
  { id: "AGT-223", title: "an idle member takes what waits, bounded", open: teams },
  { id: "AGT-224", title: "a worker's end and its outbox are one", open: teams },
  { id: "AGT-225", title: "nobody hears themselves; idle workers cost nothing", open: teams },
  { id: "AGT-226", title: "work happens inside a run only", open: teams },
  { id: "AGT-227", title: "a failed lead fails the run", open: teams },
  { id: "AGT-228", title: "a failed worker is told to the lead", open: teams },
  { id: "AGT-229", title: "deliveries of a run are bounded", open: teams },
  { id: "AGT-230", title: "a worker's approvals are its own", open: teams },
  { id: "AGT-231", title: "a last message in the last moment is not lost", open: teams },
  { id: "AGT-232", title: "lead and workers know whom and what", open: teams },
  { id: "AGT-233", title: "cancelling a task cancels its turn", open: teams },
  // 25 Memory
  { id: "AGT-260", title: "memory is durable and never crosses scopes", open: memory },
  { id: "AGT-261", title: "agent ids and scopes are apart", open: memory },
  { id: "AGT-262", title: "memory is bounded and evicts nothing", open: memory },
  { id: "AGT-263", title: "search takes any text of any language", open: memory },
  { id: "AGT-264", title: "secrets are not remembered", open: memory },
  { id: "AGT-265", title: "forgetting removes text and index", open: memory },
  { id: "AGT-267", title: "recalled notes are marked and bounded", open: memory },
  // 26 Schedules
  { id: "AGT-290", title: "cron text is checked and named when bad", open: schedules },
  { id: "AGT-291", title: "times and counts of schedules are bounded", open: schedules },
  { id: "AGT-292", title: "clock changes skip and repeat as stated", open: schedules },
  { id: "AGT-293", title: "due work is an ordinary turn", open: schedules },
  { id: "AGT-294", title: "a due time is admitted at most once", open: schedules },
  { id: "AGT-295", title: "missed times coalesce", open: schedules },
  { id: "AGT-296", title: "a refused due run leaves the schedule", open: schedules },
  { id: "AGT-297", title: "finished schedules are inactive", open: schedules },
  { id: "AGT-298", title: "a scheduled run has its session's policy", open: schedules },
  { id: "AGT-299", title: "only the holder of the state directory dispatches", open: schedules },
  // 27 Scripted provider
  { id: "AGT-330", title: "a scripted request is counted from the journal" },
  { id: "AGT-331", title: "a scripted failure acts as the live one would" },
  { id: "AGT-332", title: "after the script it fails or echoes" },
  { id: "AGT-333", title: "the scenario is kept with its session" },
  { id: "AGT-334", title: "scripted work says so everywhere" },
  { id: "AGT-335", title: "the scripted harness plays the same file" },
  { id: "AGT-336", title: "harness-only steps are refused to the provider" },
  { id: "AGT-337", title: "built-in scenarios serve the command-line faces" }
]
