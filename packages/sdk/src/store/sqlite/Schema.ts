/**
 * The migrations of the store's own tables (agent-runtime 13.2). Written down as they were run: a later change is a new
 * entry, never an edit. Columns that every write touches stand before the JSON ones, so that reading them does not walk
 * the overflow pages of a long instruction text.
 */

/** A migration of the store or of an extension. `id` is `0001`, `0002` …; forward only. */
export interface Migration {
  readonly id: string
  readonly name: string
  readonly sql: string
}

/** Major and minor version after all of {@link migrations}; a minor step only adds (STO-045). */
export const schemaMajor = 1
export const schemaMinor = 2

/** The name under which the store's own migrations are recorded. */
export const storeName = "store"

const tables = `
CREATE TABLE tr_session (
  id TEXT NOT NULL PRIMARY KEY,
  head INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  queue_revision INTEGER NOT NULL,
  queue_held TEXT,
  status TEXT,
  phase TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  archived_at INTEGER,
  closed_at INTEGER,
  workspace_id TEXT NOT NULL,
  directory TEXT NOT NULL,
  harness_id TEXT NOT NULL,
  access TEXT NOT NULL,
  parent_id TEXT,
  root_id TEXT NOT NULL,
  tool_call_id TEXT,
  owner TEXT,
  title TEXT,
  title_source TEXT,
  last_turn TEXT,
  tags TEXT NOT NULL,
  config TEXT NOT NULL,
  metadata TEXT,
  harness_payload TEXT,
  commands TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX tr_session_updated ON tr_session (workspace_id, updated_at);
CREATE INDEX tr_session_directory ON tr_session (directory);
CREATE INDEX tr_session_parent ON tr_session (parent_id);
CREATE INDEX tr_session_changed ON tr_session (changed);

CREATE TABLE tr_event (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  turn_id TEXT,
  after_turn TEXT,
  payload TEXT NOT NULL,
  artifacts TEXT,
  PRIMARY KEY (session_id, seq)
) STRICT;

CREATE TABLE tr_turn (
  id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  assistant_id TEXT NOT NULL,
  origin TEXT NOT NULL,
  state TEXT NOT NULL,
  handed_over INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  start_seq INTEGER NOT NULL,
  end_seq INTEGER,
  recoveries INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  outcome TEXT,
  prompt TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX tr_turn_message ON tr_turn (session_id, message_id);
CREATE INDEX tr_turn_open ON tr_turn (session_id) WHERE ended_at IS NULL;

CREATE TABLE tr_receipt (
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  state TEXT NOT NULL,
  turn_id TEXT,
  start_seq INTEGER NOT NULL,
  end_seq INTEGER,
  outcome TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, message_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tr_queue (
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  author TEXT,
  delivery TEXT NOT NULL,
  digest TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  parts TEXT NOT NULL,
  prompt TEXT NOT NULL,
  PRIMARY KEY (session_id, message_id)
) STRICT;

CREATE TABLE tr_message (
  session_id TEXT NOT NULL,
  id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  role TEXT NOT NULL,
  turn_id TEXT,
  parent_id TEXT,
  created_at INTEGER NOT NULL,
  completed_at INTEGER,
  info TEXT NOT NULL,
  PRIMARY KEY (session_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tr_message_ordinal ON tr_message (session_id, ordinal);
CREATE INDEX tr_message_turn ON tr_message (session_id, turn_id);

CREATE TABLE tr_part (
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  type TEXT NOT NULL,
  open_from_seq INTEGER,
  data TEXT,
  PRIMARY KEY (session_id, message_id, id)
) STRICT;

CREATE TABLE tr_interaction (
  id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  root_id TEXT NOT NULL,
  turn_id TEXT,
  kind TEXT NOT NULL,
  native_id TEXT NOT NULL,
  state TEXT NOT NULL,
  delivered INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  settled_at INTEGER,
  request TEXT NOT NULL,
  resolution TEXT,
  withdrawal TEXT
) STRICT;
CREATE INDEX tr_interaction_state ON tr_interaction (state, session_id);
CREATE INDEX tr_interaction_root ON tr_interaction (root_id, state);
CREATE UNIQUE INDEX tr_interaction_native ON tr_interaction (session_id, turn_id, native_id);

CREATE TABLE tr_todo (
  session_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (session_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE tr_binding (
  session_id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  directory TEXT NOT NULL,
  connection_id TEXT NOT NULL,
  upstream_session_id TEXT NOT NULL,
  upstream_state TEXT NOT NULL,
  owner_key TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE tr_start (
  session_id TEXT NOT NULL PRIMARY KEY,
  operation_id TEXT NOT NULL,
  state TEXT NOT NULL,
  upstream_session_id TEXT,
  error TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE tr_lease (
  session_id TEXT NOT NULL PRIMARY KEY,
  lease_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tr_usage (
  session_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  observation TEXT,
  cost TEXT,
  PRIMARY KEY (session_id, turn_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE tr_artifact (
  id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  mime TEXT NOT NULL,
  retained INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tr_artifact_session ON tr_artifact (session_id);

CREATE TABLE tr_artifact_chunk (
  id TEXT NOT NULL,
  n INTEGER NOT NULL,
  writer TEXT NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (id, n)
) STRICT;

CREATE TABLE tr_instance (
  id TEXT NOT NULL PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started TEXT NOT NULL,
  heartbeat_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tr_process (
  id TEXT NOT NULL PRIMARY KEY,
  instance_id TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started TEXT NOT NULL,
  pgid INTEGER NOT NULL,
  role TEXT NOT NULL,
  command TEXT NOT NULL,
  session_id TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE tr_tombstone (
  session_id TEXT NOT NULL PRIMARY KEY,
  deleted_at INTEGER NOT NULL,
  purged INTEGER NOT NULL,
  changed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tr_tombstone_changed ON tr_tombstone (changed);
CREATE INDEX tr_tombstone_open ON tr_tombstone (session_id) WHERE purged = 0;
`

/** Running totals of usage (D-24), and what a start-up looks for without walking all receipts (RT-088). */
const usageTotals = `
ALTER TABLE tr_usage ADD COLUMN ref TEXT;
UPDATE tr_usage SET ref = CASE json_extract(observation, '$.kind')
  WHEN 'round' THEN 'round:' || turn_id || ':' || json_extract(observation, '$.responseId')
  WHEN 'cumulative' THEN 'cumulative:' || coalesce(json_extract(observation, '$.nativeSessionId'), '')
  WHEN 'delta' THEN 'delta:' || json_extract(observation, '$.providerObservationId')
END;
CREATE INDEX tr_receipt_steering ON tr_receipt (session_id) WHERE state = 'steering';
CREATE INDEX tr_usage_ref ON tr_usage (session_id, ref, sequence) WHERE ref IS NOT NULL;

CREATE TABLE tr_usage_total (
  session_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cached_input_tokens INTEGER,
  rounds INTEGER NOT NULL,
  PRIMARY KEY (session_id, turn_id)
) STRICT, WITHOUT ROWID;
`

/** Where a harness's own record stood when a turn's events were journaled (HRN-241). */
const peerCursor = `
ALTER TABLE tr_turn ADD COLUMN peer_cursor TEXT;
`

/** The tables every store has before its first migration. */
export const bootstrap = `
CREATE TABLE tr_meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE tr_migration (
  id INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  applied_at INTEGER NOT NULL
) STRICT;
`

/** The store's own migrations, oldest first. */
export const migrations: ReadonlyArray<Migration> = [
  { id: "0001", name: "tables", sql: tables },
  { id: "0002", name: "usage_totals", sql: usageTotals },
  { id: "0003", name: "peer_cursor", sql: peerCursor }
]
