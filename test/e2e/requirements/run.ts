/** Rules RUN- of the run protocol. One entry a rule, grouped by section. */
import type { Requirement } from "./Requirement.ts"

const postgres = "PostgreSQL comes with the HTTP service"
const keychain = "comes with the keychain"
const mcp = "comes with MCP servers of the host"
const callbacks = "comes with application callbacks"
const teams = "comes with teams"

export const runRules: ReadonlyArray<Requirement> = [
  // 3 Transport and framing
  { id: "RUN-001", title: "one JSON object per line in UTF-8; a leading byte order mark is skipped" },
  { id: "RUN-002", title: "only the newline byte splits frames" },
  { id: "RUN-003", title: "a frame may be exactly the limit" },
  { id: "RUN-004", title: "an oversize frame is discarded in constant memory and answered" },
  { id: "RUN-005", title: "bytes that are not JSON are answered and skipped" },
  { id: "RUN-006", title: "blank lines are ignored" },
  { id: "RUN-007", title: "a batch is one refusal" },
  { id: "RUN-008", title: "version, method and params have one form" },
  { id: "RUN-009", title: "request ids are echoed exactly, others refused" },
  { id: "RUN-010", title: "ids need not be unique" },
  { id: "RUN-011", title: "a frame without id is never answered or executed" },
  { id: "RUN-012", title: "unknown notifications and responses are counted" },
  { id: "RUN-013", title: "nesting is bounded and odd keys are plain data" },
  { id: "RUN-014", title: "odd code units survive, except in ids" },
  { id: "RUN-015", title: "an unterminated last frame counts" },
  { id: "RUN-016", title: "frames are written whole, bounded and escaped" },
  { id: "RUN-017", title: "stdout carries frames only" },
  { id: "RUN-018", title: "unsent output stops reading and drops nothing" },
  { id: "RUN-019", title: "stderr is one log object per line and never blocks" },
  { id: "RUN-020", title: "host/info tells its state and growing counters" },
  { id: "RUN-021", title: "list pages end early and continue" },
  // 4 Order, waiting, overload
  { id: "RUN-030", title: "answers leave in order of arrival" },
  { id: "RUN-031", title: "ordinary requests take effect one by one" },
  { id: "RUN-032", title: "control requests overtake slow host-wide ones" },
  { id: "RUN-033", title: "a parked wait occupies no lane" },
  { id: "RUN-034", title: "a parked wait yields to other requests" },
  { id: "RUN-035", title: "several waits park together and answer in order" },
  { id: "RUN-036", title: "no wait outlasts five seconds" },
  {
    id: "RUN-037",
    title: "callback frames are consumed while anything waits",
    remains: "applications are not called yet: comes with application callbacks"
  },
  { id: "RUN-038", title: "overload is answered busy, reading goes on" },
  {
    id: "RUN-039",
    title: "short conflicts are retried, then busy",
    open: "no short conflict reaches a request: one host has its store, which itself waits for a busy file (STO-043)"
  },
  {
    id: "RUN-040",
    title: "only two methods may take longer than five seconds",
    open: "mcp/register and walls, which may take long, come with their issues; no other request waits for a child"
  },
  // 5 Errors
  { id: "RUN-060", title: "every error has a code and kind of the table" },
  { id: "RUN-061", title: "bad params are named by path, never by value" },
  { id: "RUN-062", title: "an error answer means nothing changed" },
  { id: "RUN-063", title: "an unknown method is told apart from an early one" },
  { id: "RUN-064", title: "failed writes leave the host answering reads" },
  // 6 Launch, configuration, state directory
  { id: "RUN-080", title: "a bad config names its field; unknown fields warn" },
  { id: "RUN-081", title: "a failed start answers one request, then exits" },
  { id: "RUN-082", title: "exit codes tell the reason" },
  { id: "RUN-083", title: "the SDK starts the host with listed variables only" },
  { id: "RUN-084", title: "the host drops every other variable" },
  { id: "RUN-085", title: "tool and MCP children get the short list and their own env" },
  { id: "RUN-086", title: "model keys come through two methods only" },
  { id: "RUN-087", title: "the state directory is private and tightened" },
  { id: "RUN-088", title: "one host holds a state directory" },
  {
    id: "RUN-089",
    title: "telemetry carries no content and slows nothing",
    open: "the export of telemetry comes later; a configured endpoint is named in the warnings of initialize"
  },
  { id: "RUN-090", title: "no child group outlives a killed host" },
  { id: "RUN-092", title: "the tool runner starts at need and matches the host's version" },
  { id: "RUN-093", title: "hosts share one database under leases", open: postgres },
  {
    id: "RUN-094",
    title: "whoever may end a run locks its row first",
    open: "teams come with their issue; a run of one member ends with its turn"
  },
  { id: "RUN-095", title: "a host recovers what it owns", open: "hosts that share a database come with PostgreSQL" },
  // 7 initialize
  { id: "RUN-120", title: "any protocol version is answered with one" },
  { id: "RUN-121", title: "nothing runs before initialize" },
  { id: "RUN-122", title: "a second initialize changes nothing" },
  { id: "RUN-123", title: "a missing capability answers unsupported by name" },
  { id: "RUN-124", title: "recovered work waits for initialize" },
  { id: "RUN-125", title: "initialize answers fast" },
  // 8 Journal, cursors, events, artifacts
  { id: "RUN-140", title: "sequence numbers count from one and never change" },
  { id: "RUN-141", title: "a malformed or too large cursor is refused with the head" },
  { id: "RUN-142", title: "a foreign session in cursors is refused blindly" },
  { id: "RUN-143", title: "a member left out is read from the run's start" },
  { id: "RUN-144", title: "the journal id tells a replaced store with its heads" },
  { id: "RUN-145", title: "answers carry the cursor of every member" },
  { id: "RUN-146", title: "reading again gives the same bytes and summaries" },
  // 8.1 Event wire form
  { id: "RUN-170", title: "nothing on the wire is ahead of the journal" },
  { id: "RUN-171", title: "event times never go back" },
  { id: "RUN-172", title: "no event passes 256 KiB" },
  { id: "RUN-173", title: "payload fields leave the envelope's names alone" },
  { id: "RUN-174", title: "known secrets are redacted before they are written" },
  { id: "RUN-175", title: "readers skip unknown event types" },
  // 8.2 Summaries
  { id: "RUN-180", title: "summaries use aliases and durable records only" },
  { id: "RUN-181", title: "a run state carries event and summary side by side" },
  // 8.3 Pages
  { id: "RUN-190", title: "a page is bounded by count and bytes and never empty in vain" },
  {
    id: "RUN-191",
    title: "members are merged by time, each by its numbers",
    open: "runs of several members come with teams"
  },
  { id: "RUN-192", title: "more_events is exact" },
  { id: "RUN-193", title: "small pages joined equal a large one" },
  { id: "RUN-194", title: "one answer is one consistent read" },
  // 8.4 artifact/read and event/read
  { id: "RUN-200", title: "an artifact is durable with its event; oversize keeps size and digest" },
  { id: "RUN-201", title: "an artifact belongs to its session" },
  { id: "RUN-202", title: "reading past the end is empty and ended" },
  { id: "RUN-203", title: "events of a closed session stay readable" },
  // 9 Model providers and connections
  { id: "RUN-220", title: "a keyless provider is used without authentication" },
  { id: "RUN-221", title: "api, address and scenario of a provider are fixed" },
  { id: "RUN-222", title: "an address is never implied by a name" },
  { id: "RUN-223", title: "a key never travels over plain http off loopback" },
  { id: "RUN-224", title: "a replaced key is used by the next request" },
  { id: "RUN-225", title: "no key appears anywhere" },
  {
    id: "RUN-226",
    title: "keys go to the system's keychain or are refused",
    remains: "storing in a keychain comes with the keychain"
  },
  { id: "RUN-227", title: "leaving the keychain deletes the entry", remains: keychain },
  { id: "RUN-228", title: "a provider that lost its key is not used openly" },
  { id: "RUN-229", title: "connections are views on providers of their name" },
  { id: "RUN-230", title: "removing a connection keeps its provider" },
  { id: "RUN-231", title: "providers are permanent and bounded" },
  // 10 MCP servers
  {
    id: "RUN-250",
    title: "registration starts the server or keeps nothing",
    remains: "servers of sessions start so; the call that registers comes with MCP servers of the host"
  },
  { id: "RUN-251", title: "a registration is fixed per name", open: mcp },
  { id: "RUN-252", title: "remote servers are on loopback, redirects included", open: mcp },
  {
    id: "RUN-253",
    title: "servers and tools are bounded and named",
    remains: "selection and the bound over all servers come with MCP servers of the host"
  },
  {
    id: "RUN-254",
    title: "an MCP tool is external unless the app says otherwise",
    remains: "categories that the app gives come with MCP servers of the host"
  },
  { id: "RUN-255", title: "registrations are durable without secret values", open: mcp },
  { id: "RUN-256", title: "changed tools are noticed, new ones not smuggled in" },
  { id: "RUN-257", title: "a server is a group, restarted within limits" },
  { id: "RUN-258", title: "a lost call has an unknown outcome" },
  { id: "RUN-259", title: "a server is stopped by the ladder" },
  // 11 Application callbacks
  {
    id: "RUN-280",
    title: "descriptors are durable, functions bound to a connection",
    remains: "the host's half comes with application callbacks"
  },
  { id: "RUN-281", title: "a tool name belongs to its first owner", open: callbacks },
  { id: "RUN-282", title: "an owner's new version is a binding change", open: callbacks },
  { id: "RUN-283", title: "a bad schema applies nothing", open: callbacks },
  { id: "RUN-284", title: "a call event follows its checks in order", open: callbacks },
  { id: "RUN-285", title: "invocation ids cannot be guessed", open: callbacks },
  { id: "RUN-286", title: "a result is accepted once, from whom was asked", open: callbacks },
  {
    id: "RUN-287",
    title: "an oversize output is an unknown outcome",
    remains: "the host's half comes with application callbacks"
  },
  { id: "RUN-288", title: "a failed callback is never called again", open: callbacks },
  { id: "RUN-289", title: "callback errors are cut, cleaned and redacted", open: callbacks },
  { id: "RUN-290", title: "pending invocations are bounded", open: callbacks },
  { id: "RUN-291", title: "callbacks have two clocks and bounded progress", open: callbacks },
  { id: "RUN-292", title: "a cancelled callback is settled without waiting", open: callbacks },
  { id: "RUN-293", title: "an unbound tool is not run", open: callbacks },
  {
    id: "RUN-294",
    title: "the SDK binds again before it is ready",
    remains: "the host's half comes with application callbacks"
  },
  { id: "RUN-295", title: "only the journal's end proves an effect", open: callbacks },
  { id: "RUN-296", title: "what version one of callbacks leaves out", open: callbacks },
  // 12 Agents
  { id: "RUN-320", title: "registration is all or nothing" },
  { id: "RUN-321", title: "profiles and subagents are bounded" },
  { id: "RUN-322", title: "every tool name resolves" },
  { id: "RUN-323", title: "an agent has a tool or a flag that brings one" },
  { id: "RUN-324", title: "contradicting fields are refused" },
  { id: "RUN-325", title: "the same definition is a duplicate, another a conflict" },
  { id: "RUN-326", title: "registration grants and changes nothing else" },
  { id: "RUN-327", title: "definitions are durable before the answer" },
  { id: "RUN-328", title: "a startup definition equals the saved one" },
  { id: "RUN-329", title: "a provider may come after its agent" },
  { id: "RUN-330", title: "a session keeps its definitions" },
  { id: "RUN-331", title: "missing tools fail registration and unknown ones start-up" },
  // 13 Sessions
  { id: "RUN-350", title: "a session and its members are made together or not at all" },
  { id: "RUN-351", title: "the workspace is resolved once" },
  { id: "RUN-352", title: "a worker-only agent leads no session", remains: teams },
  { id: "RUN-353", title: "a model override is the session's own and checked" },
  { id: "RUN-354", title: "a member without a model is refused; scripted ones keep theirs" },
  { id: "RUN-355", title: "creation is idempotent under its id" },
  { id: "RUN-356", title: "attach tells state, runs and cursors and starts nothing" },
  { id: "RUN-357", title: "the list is newest first and bounded" },
  { id: "RUN-360", title: "work in any form is never idle" },
  { id: "RUN-361", title: "timers are null without scheduling" },
  { id: "RUN-362", title: "session/send acts as the call it stands for" },
  { id: "RUN-363", title: "a target is a member and a named run the right one" },
  { id: "RUN-364", title: "a message approves nothing and waits for no run" },
  { id: "RUN-365", title: "a revoked grant asks again" },
  { id: "RUN-366", title: "a worker's state is its own", remains: teams },
  // 14 Runs: start and receipts
  { id: "RUN-380", title: "early refusals leave the id unused" },
  { id: "RUN-381", title: "text is compared exactly" },
  { id: "RUN-382", title: "admission is one transaction" },
  { id: "RUN-383", title: "start cursors are the heads before, also when repeated" },
  { id: "RUN-384", title: "any number of equal starts make one turn" },
  { id: "RUN-385", title: "no new run while the old one has work" },
  { id: "RUN-386", title: "a refusal after reservation is kept on the receipt" },
  { id: "RUN-387", title: "at most thirty-two turns work at once" },
  { id: "RUN-388", title: "turn/start is the same admission" },
  // 15 run/wait and RunState
  { id: "RUN-410", title: "a wait returns at the first of its reasons" },
  { id: "RUN-411", title: "a wait only observes" },
  { id: "RUN-412", title: "interrupted means that someone is asked" },
  { id: "RUN-413", title: "a terminal status follows its last event" },
  { id: "RUN-414", title: "known interactions do not wake a wait" },
  { id: "RUN-415", title: "events end at the run's boundary" },
  { id: "RUN-416", title: "a run ends on proof, never on quiet" },
  { id: "RUN-417", title: "a terminal state never changes" },
  { id: "RUN-418", title: "the parts of a state are bounded" },
  { id: "RUN-419", title: "an unknown submission and a worker's session are told" },
  // 16 Answering interactions
  { id: "RUN-440", title: "an answer has the field its kind asks for" },
  { id: "RUN-441", title: "the first answer wins and is repeatable" },
  { id: "RUN-442", title: "foreign and withdrawn interactions are told apart" },
  { id: "RUN-443", title: "an answer is durable before it acts" },
  { id: "RUN-444", title: "a client's answer is a person's" },
  { id: "RUN-445", title: "an interaction waits without end and over restarts" },
  { id: "RUN-446", title: "a session answer settles its siblings by grant" },
  { id: "RUN-447", title: "a denial's reason reaches the model and the turn goes on" },
  // 17 Cancel and close
  { id: "RUN-470", title: "every member is attempted, workers first", open: "runs of several members come with teams" },
  { id: "RUN-471", title: "cancel answers when done or with what is still busy" },
  { id: "RUN-472", title: "cancel stops model, tools and interactions" },
  { id: "RUN-473", title: "a cancel at any moment leaves one terminal state" },
  { id: "RUN-474", title: "cancelling an idle session is empty and safe" },
  { id: "RUN-475", title: "the run is cancelled and deliveries are held" },
  { id: "RUN-476", title: "a cancelled team takes no work again", remains: teams },
  { id: "RUN-477", title: "close refuses busy members and is final" },
  { id: "RUN-478", title: "cancelling a worker is its own turn only", open: teams },
  // 18 Recovery and shutdown
  { id: "RUN-520", title: "every open turn and run is classified before it is shown" },
  { id: "RUN-521", title: "a recovered turn waits for what it needs, bounded" },
  { id: "RUN-522", title: "a started tool is never run again" },
  { id: "RUN-523", title: "a third fruitless recovery is a failure" },
  { id: "RUN-524", title: "end of input and signals leave turns to recovery, within five seconds" },
  { id: "RUN-525", title: "a second signal ends at once" },
  { id: "RUN-526", title: "a broken stdout is the end of input" },
  // 28 In process, and duties of a client
  { id: "RUN-570", title: "a client reads while it waits" },
  { id: "RUN-571", title: "a client names its submissions and repeats little" },
  { id: "RUN-572", title: "a client loops on run/wait to the end" },
  { id: "RUN-573", title: "a client restores its host completely" },
  { id: "RUN-574", title: "partial cancels and closes throw" },
  { id: "RUN-575", title: "a client holds no policy of its own" },
  { id: "RUN-590", title: "the embedded host differs by framing only" },
  { id: "RUN-591", title: "embedded callbacks pass the same checks", open: callbacks },
  { id: "RUN-592", title: "disposing an embedded host leaves the app alone" }
]
