/**
 * Names of the variables that a rig service gives to a seat, and of those that set up the service (seat contract 2.1, 2.2).
 * Plain data: a program that has to start fast reads it without loading a schema.
 *
 * @since 0.1.0
 */

/** Variables of a seat, by what they mean. @since 0.1.0 */
export const seatVariables = {
  nodeId: "OPENRIG_NODE_ID",
  sessionName: "OPENRIG_SESSION_NAME",
  runtime: "OPENRIG_RUNTIME",
  generation: "OPENRIG_OCCUPANT_GENERATION",
  home: "OPENRIG_HOME",
  url: "OPENRIG_URL",
  host: "OPENRIG_HOST",
  port: "OPENRIG_PORT",
  token: "OPENRIG_ACTIVITY_HOOK_TOKEN",
  launchAttempt: "OPENRIG_LAUNCH_ATTEMPT",
  launchResult: "OPENRIG_LAUNCH_RESULT",
  resumeRef: "OPENRIG_RESUME_REF",
  firstInput: "OPENRIG_FIRST_INPUT",
  model: "OPENRIG_MODEL"
} as const
/** What a variable of a seat means. @since 0.1.0 */
export type SeatVariable = keyof typeof seatVariables

/** Variables that a pane gets from its surroundings, besides those of the contract. @since 0.1.0 */
export const paneVariables = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"] as const

/** Where a runner looks for a service's files when `OPENRIG_HOME` is not set, below the person's home. @since 0.1.0 */
export const defaultSeatHome = ".openrig"

/** Address used when `OPENRIG_HOST` is not set. @since 0.1.0 */
export const defaultSeatHost = "127.0.0.1"

/** The header that a token may travel in beside `Authorization: Bearer`. @since 0.1.0 */
export const tokenHeader = "x-openrig-activity-token"

/** Names under the service home. @since 0.1.0 */
export const rigFiles = {
  hookToken: "activity-hook-token",
  endpoint: "activity-endpoint.json",
  operatorToken: "operator-token",
  store: "rig.sqlite",
  lock: "rig.lock",
  socket: "tmux.sock",
  presets: "community-harnesses",
  launch: "launch",
  transcripts: "transcripts"
} as const

/** Variables that set up a rig service. @since 0.1.0 */
export const rigSettings = {
  home: "TACKROOM_HOME",
  host: "TACKROOM_RIG_HOST",
  port: "TACKROOM_RIG_PORT",
  guestPort: "OPENRIG_GUEST_ACTIVITY_PORT",
  guestHost: "OPENRIG_GUEST_ACTIVITY_HOST",
  guestUrl: "TACKROOM_RIG_GUEST_URL",
  launchWait: "TACKROOM_RIG_LAUNCH_WAIT",
  tmuxSocket: "TACKROOM_RIG_TMUX_SOCKET",
  unaskable: "TACKROOM_RIG_UNASKABLE",
  maxOptions: "TACKROOM_RIG_MAX_OPTIONS"
} as const

/** Values of the settings that are not set. @since 0.1.0 */
export const rigDefaults = {
  host: "127.0.0.1",
  port: 7440,
  guestHost: "127.0.0.1",
  launchWaitSeconds: 30,
  maxOptions: 4,
  unaskable: "permit"
} as const

/** Prefixes that tell the tokens of a rig service apart. @since 0.1.0 */
export const tokenPrefixes = { operator: "tro_", grant: "trg_", person: "trp_" } as const
