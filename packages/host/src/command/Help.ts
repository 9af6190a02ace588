/** The help of the program and of each subcommand, as text of at most 80 columns. Pure. */
import { builtIns, companions } from "./Command.ts"

const table = (rows: ReadonlyArray<readonly [string, string]>): string => {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}\n`).join("")
}

const overview = (): string => `Runs agents on this machine, durably, behind one set of wire protocols.

Usage:
  tackroom run "PROMPT" [flags]
  tackroom serve [flags]
  tackroom acp [flags]
  tackroom harness-stdio CONFIG
  tackroom NAME [arguments]

Subcommands:
${table(builtIns.map(({ name, summary }) => [name, summary]))}
Programs of other packages, run when they are installed beside this one or on
PATH as tackroom-NAME:
${table(companions.map(({ name, summary }) => [name, summary]))}
Flags:
${table([
  ["-h, --help", "This text; tackroom help NAME for a subcommand"],
  ["-V, --version", "The version"]
])}
Environment:
${table([
  ["TACKROOM_HOME", "Where state is kept: host/, rig/ and server/ are in it"],
  ["TACKROOM_LOG_LEVEL", "debug, info (default), warn or error"]
])}
The first run needs no key and no network:
  tackroom run "Write a summary"
A scripted model answers then, and says so.
`

/** What `run` and `serve` share. */
const sharedFlags = `  --project DIR     Directory the agent works in (default: this one; with
                    --session the session's own)
  --agent ID        Agent to run: assistant, which is built in and has all file,
                    shell and web tools, or one of the configuration's
  --harness KEY     Serve a bare harness: native, scripted, or one that the
                    configuration has under harnesses
  --model C/M       Model M of connection C, split at the first slash:
                      openai/MODEL      key from OPENAI_API_KEY
                      anthropic/MODEL   key from ANTHROPIC_API_KEY
                      script/NAME       a built-in scenario: demo, hello,
                                        question, tools, long, unreliable, echo
                    or a connection of the configuration. Without the flag, and
                    without a model in the agent, the scenario demo plays.
                    Another harness takes its own name of a model here
  --key-env NAME    Read the model's key from this variable instead
  --base-url URL    Endpoint of an OpenAI-compatible server for the connection
                    of --model (for anthropic: another Anthropic endpoint)
  --session ID      Go on with this session
  --state-dir DIR   Where sessions are kept (default: TACKROOM_STATE_DIR, else
                    the configuration's, else TACKROOM_HOME/host)
  --config PATH     A host configuration: agents, providers, limits, serve
  --max-rounds N    At most N model rounds a run; 0 or less: no cap
  --timeout S       At most S seconds a run; 0 or less: no cap
  --events SET      Lines of the run: full (default) or source, the contract's
`

const run = `Gives one prompt to an agent, shows its work, and ends.

Usage:
  tackroom run [flags] PROMPT
  tackroom run [flags] -            reads the prompt from stdin
  echo PROMPT | tackroom run [flags]

Flags:
${sharedFlags}  --approve P       Who settles what the agent asks:
                      ask      you, on the terminal (default on a terminal)
                      never    everything is refused (default otherwise)
                      reads    reading is allowed, the rest refused
                      all      everything is allowed
                    Questions are answered by nobody but you.
  --json            Run lines of serve mode on stdout: start … result
  --quiet           Nothing on stderr but errors
  --run-id ID       Put run_id on every line of --json
  -h, --help        This text

The answer goes to stdout, everything else to stderr. On a terminal the text
comes as the model writes it. Keys are read once and are given to no child.

An approval takes y (once), s (for this session) or n (deny); what follows n
is told to the agent: n use the test folder instead

Signals: the first SIGINT, SIGTERM or SIGHUP cancels the run and waits for its
end; a second one ends at once.

Exit codes: 0 completed, 1 failed or cancelled, 2 usage, 3 could not start,
128 + n on a second signal n.

Examples:
  tackroom run "What does this project do?"
  tackroom run --model openai/gpt-5-mini --approve reads "Review src/" > out.md
  git diff | tackroom run --model anthropic/claude-sonnet-4-5 --approve never -
  tackroom run --model local/qwen3 --base-url http://127.0.0.1:11434/v1 "Hello"
`

const serve = `Serves one session to a driving program: one JSON object per line.

Usage:
  tackroom serve [flags]

stdin takes ops, stdout gives lines. The first line is ready. A submit starts a
run: start, then deltas and notices, then exactly one result; then the next
submit may come. While it works, answer settles what it asks and cancel stops
it; hello, ping and shutdown are always answered.

Flags:
${sharedFlags}  --answer-timeout S  Withdraw an ask after S seconds (default: never)
  --eof MODE        What the end of stdin does to a run: cancel (default), or
                    finish, which lets it go on without anybody to ask
  -h, --help        This text

stderr has one JSON log object per line. Ops and lines are described in
docs/serve-mode.md and in the published schemas serve-ops and serve-lines.

Signals: the first SIGINT, SIGTERM or SIGHUP cancels the run, writes its result
and ends; a second one ends at once.

Exit codes: 0 ended as asked, 1 the store or the session was lost, 2 usage,
3 could not start (no ready was written), 128 + n on a second signal n.

Example:
  echo '{"op":"submit","run_id":"1","prompt":"Hello"}' |
    tackroom serve --model script/hello --eof finish
`

const acp = `Is an agent in an editor: the Agent Client Protocol, version 1, on stdio.

Usage:
  tackroom acp [flags]

An editor starts it, sets sessions up in its project folders, and answers
what the agent asks. Sessions are kept: the editor lists them, and goes on with
one after a restart. Other faces of tackroom see the same sessions.

Flags:
  --agent ID          Agent to be: assistant, which is built in, or one of the
                      configuration's
  --harness KEY       Be a bare harness: native, scripted, or one that the
                      configuration has under harnesses
  --model C/M         Model of new sessions, as for tackroom run
  --key-env NAME      Read the model's key from this variable instead
  --base-url URL      Endpoint of the connection of --model
  --state-dir DIR     Where sessions are kept; several processes may share it
                      (default: TACKROOM_STATE_DIR, else the configuration's,
                      else TACKROOM_HOME/host)
  --config PATH       A host configuration: agents, providers, harnesses
  --max-rounds N      Stop a turn after N requests to the model
  --timeout S         Stop a turn after S seconds
  --answer-timeout S  Withdraw a request after S seconds (default: never)
  --probe             Start the agent of --harness once before the editor is
                      answered, to know how one signs in and what it takes
  --sign-in ID        Sign in to that agent in this terminal, and end
  -h, --help          This text

stderr has one JSON log object per line. Keys are read once from the
environment and given to no child.

Signals and the end of stdin cancel what runs and end the program; a second
signal ends it at once.

Exit codes: 0 ended as asked, 1 internal failure, 2 usage, 3 could not start,
128 + n on a second signal n.

Example, as an editor would have it:
  {"command": "tackroom", "args": ["acp", "--model", "openai/gpt-5-mini"]}
`

const stdio = `Runs agents for an application: the run protocol, version 1, on stdio.

Usage:
  tackroom harness-stdio CONFIG

CONFIG is the host configuration as JSON text, or @ and the absolute path of a
file with it, as is better above about 32 KB.

Configuration, the fields most used:
  state_dir   (required) absolute path; created with mode 0700; one host at a
              time
  agents      agent definitions to start with
  providers   model providers without keys: {name, api, base_url?, scenario?}
              with api responses, chat-completions, anthropic or script
  runner      executable that runs the tools (default: this program)
  sandbox     none (more in a later version)
  limits      lower some of the limits that initialize reports

stdin takes one JSON-RPC 2.0 request per line, stdout gives one answer per line
in the order of the requests, stderr has one JSON log object per line. Keys are
given with provider/set or connection/set, never in the configuration or the
environment. The host ends at the end of stdin or at SIGTERM, SIGINT or SIGHUP;
work that is not done stays in the journal and goes on at the next start.

Exit codes: 0 ended as asked, 1 internal failure, 2 bad configuration or usage,
3 the state directory belongs to another host, 4 storage, 5 another failure to
start.

Example:
  tackroom harness-stdio '{"state_dir":"/var/lib/notes/agents"}'
`

const toolRunner = `Runs file and shell tools for a host, in a process of its own.

Usage:
  tackroom tool-runner

A host starts it by itself. It takes calls on stdin, reports on stdout, and ends
at the end of stdin. It must be of the same version as its host.
`

const help = `Explains the program or one subcommand.

Usage:
  tackroom help [NAME]
`

const texts: ReadonlyMap<string, string> = new Map([
  ["run", run],
  ["serve", serve],
  ["acp", acp],
  ["harness-stdio", stdio],
  ["tool-runner", toolRunner],
  ["help", help]
])

/** The help on a built-in subcommand, or on the program. */
export const helpText = (topic: string | undefined): string =>
  (topic === undefined ? undefined : texts.get(topic)) ?? overview()
