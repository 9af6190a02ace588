/** The help of `tackroom-seat`, as text of at most 80 columns. */
export const help = `Runs an agent that speaks ACP in a terminal seat: each message that is typed or
pasted is one prompt, and the rig service is told what the agent does.

Usage:
  tackroom-seat --harness NAME --agent-command "CMD ARGS" [flags]
  tackroom-seat --harness NAME [flags] -- CMD ARGS...

Flags:
  --harness NAME          The preset's name in records and posts (default:
                          OPENRIG_RUNTIME)
  --agent-command "CMD"   The agent: words and quotes, without a shell
  --preset FILE           What is not given here, from a preset's tackroom key
                          (default: the preset that the rig started)
  --env NAME              Pass this variable to the agent; may be repeated
  --auth METHOD           Authenticate with this method before opening
  --model-env NAME        Where OPENRIG_MODEL goes: a variable,
  --model-flag FLAG       two more arguments,
  --model-config ID       or an option of the conversation
  --reopen auto|resume|load
                          How a conversation is reopened (default: auto)
  --not-found-code N      Error code with which the agent says that there is no
                          such conversation (default: -32002); may be repeated
  --list-is-complete      The agent's list names every conversation
  --when-unanswerable permit|refuse
                          What a request gets that the rig cannot settle
                          (default: permit)
  --liveness S            Seconds that a beat of a quiet turn counts, 5 to 60
                          (default: 30)
  --idle-liveness S       Seconds that an idle report counts (default: 60)
  --open-timeout S        Limit of each step of the opening (default: 60)
  --show-thoughts         Show the agent's thoughts
  --show-history          Show what a reopened conversation repeats
  -h, --help              This text
  -V, --version           The version

Each flag can be given as a variable TACKROOM_SEAT_FLAG, for example
TACKROOM_SEAT_SHOW_THOUGHTS=true.

In the pane: Enter submits, Ctrl-C or the message /abort cancels the turn,
Ctrl-U empties the draft. A message during a turn is the next turn.

Exit codes: 0 the agent ended between turns, or piped input is done; 1 the agent
ended otherwise; 3 the conversation is missing; 4 it is not confirmed; 5 another
one was opened; 64 usage; 69 the agent could not be started; 70 internal; 76 no
conversation could be opened; 128 + n ended by signal n.

Example:
  tackroom-seat --harness claude --env ANTHROPIC_API_KEY -- claude-agent-acp
`
