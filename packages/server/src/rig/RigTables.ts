/** The tables of a rig service's store (RIG-320). Times are milliseconds since the epoch; tokens are kept as hashes only. */
import type { FileSchema } from "../database/SqliteFile.ts"

const first = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE rigs (name TEXT PRIMARY KEY, file TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
CREATE TABLE seats (
  node_id TEXT PRIMARY KEY,
  rig TEXT NOT NULL REFERENCES rigs (name),
  pod TEXT NOT NULL,
  member TEXT NOT NULL,
  session TEXT NOT NULL UNIQUE,
  harness TEXT NOT NULL,
  cwd TEXT NOT NULL,
  model TEXT,
  first_input TEXT,
  guest INTEGER NOT NULL,
  native_ref TEXT,
  ref_harness TEXT,
  ref_missing INTEGER NOT NULL DEFAULT 0,
  launch TEXT NOT NULL,
  warnings TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE INDEX seats_of_rig ON seats (rig, session);
CREATE TABLE occupants (
  generation TEXT PRIMARY KEY,
  node_id TEXT NOT NULL REFERENCES seats (node_id),
  ordinal INTEGER NOT NULL,
  attempt TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('reserved', 'live', 'ended', 'dropped')),
  harness TEXT NOT NULL,
  declaration TEXT NOT NULL,
  reserved_at INTEGER NOT NULL,
  registered_at INTEGER,
  ended_at INTEGER,
  UNIQUE (node_id, ordinal)
) STRICT;
CREATE UNIQUE INDEX one_live_occupant ON occupants (node_id) WHERE state = 'live';
CREATE INDEX open_occupants ON occupants (state) WHERE state IN ('reserved', 'live');
CREATE TABLE attempts (
  attempt TEXT PRIMARY KEY,
  generation TEXT NOT NULL REFERENCES occupants (generation),
  resumes TEXT,
  wants_record INTEGER NOT NULL,
  folder INTEGER NOT NULL,
  wait_until INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'late', 'set')),
  record TEXT
) STRICT;
CREATE INDEX open_attempts ON attempts (state) WHERE state <> 'set';
CREATE TABLE grants (
  hash TEXT PRIMARY KEY,
  node_id TEXT NOT NULL,
  generation TEXT NOT NULL,
  attempt TEXT NOT NULL,
  minted_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;
CREATE INDEX grants_of_generation ON grants (generation);
CREATE TABLE posts (
  id INTEGER PRIMARY KEY,
  node_id TEXT NOT NULL,
  generation TEXT,
  sequence INTEGER,
  occurred_at INTEGER NOT NULL,
  arrived_at INTEGER NOT NULL,
  hook_event TEXT NOT NULL,
  subtype TEXT NOT NULL,
  body TEXT NOT NULL,
  why TEXT NOT NULL
) STRICT;
CREATE INDEX posts_of_seat ON posts (node_id, id);
CREATE TABLE activity (
  node_id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  value TEXT NOT NULL,
  source TEXT NOT NULL,
  since INTEGER NOT NULL
) STRICT;
CREATE TABLE asks (
  ask_id TEXT PRIMARY KEY,
  ordinal INTEGER NOT NULL UNIQUE,
  node_id TEXT NOT NULL,
  generation TEXT NOT NULL,
  native_ref TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  request_id TEXT NOT NULL,
  tool_call TEXT NOT NULL,
  options TEXT NOT NULL,
  content TEXT NOT NULL,
  why TEXT NOT NULL,
  row_id TEXT NOT NULL,
  handoffs INTEGER NOT NULL DEFAULT 0,
  opened_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  option_id TEXT,
  reason TEXT,
  said TEXT,
  by TEXT,
  how TEXT,
  settled_at INTEGER
) STRICT;
CREATE INDEX asks_of_request ON asks (generation, native_ref, request_id);
CREATE INDEX pending_asks ON asks (node_id) WHERE state = 'pending';
CREATE INDEX settled_asks ON asks (settled_at) WHERE state <> 'pending';
CREATE TABLE ask_rows (
  row_id TEXT PRIMARY KEY,
  ask_id TEXT NOT NULL REFERENCES asks (ask_id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  owner_kind TEXT NOT NULL CHECK (owner_kind IN ('person', 'seat')),
  owner TEXT NOT NULL,
  state TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  closed_at INTEGER,
  by TEXT,
  note TEXT,
  UNIQUE (ask_id, ordinal)
) STRICT;
CREATE TABLE permits (
  id INTEGER PRIMARY KEY,
  generation TEXT NOT NULL,
  native_ref TEXT NOT NULL,
  request_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  content TEXT NOT NULL,
  option_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX permits_of_request ON permits (generation, native_ref, request_id);
CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT NOT NULL, token TEXT NOT NULL UNIQUE, added_at INTEGER NOT NULL) STRICT;
CREATE TABLE permission_settings (
  id INTEGER PRIMARY KEY,
  node_id TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('default', 'person', 'deny')),
  person TEXT,
  reason TEXT NOT NULL,
  by TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX settings_of_seat ON permission_settings (node_id, id);
CREATE TABLE stream_items (
  id TEXT PRIMARY KEY,
  ordinal INTEGER NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  source TEXT NOT NULL,
  tags TEXT NOT NULL,
  body TEXT NOT NULL,
  data TEXT NOT NULL,
  archived_at INTEGER
) STRICT;
CREATE TABLE snapshots (
  id TEXT PRIMARY KEY,
  ordinal INTEGER NOT NULL UNIQUE,
  rig TEXT NOT NULL,
  taken_at INTEGER NOT NULL,
  file TEXT NOT NULL,
  seats TEXT NOT NULL
) STRICT;
CREATE INDEX snapshots_of_rig ON snapshots (rig, ordinal);
CREATE TABLE sends (
  id TEXT PRIMARY KEY,
  node_id TEXT NOT NULL,
  generation TEXT,
  at INTEGER NOT NULL,
  sender TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  forced TEXT,
  outcome TEXT NOT NULL
) STRICT;
CREATE TABLE feed (cursor INTEGER PRIMARY KEY, type TEXT NOT NULL, at TEXT NOT NULL, data TEXT NOT NULL) STRICT;
CREATE TABLE idempotency (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  request TEXT NOT NULL,
  status INTEGER NOT NULL,
  answer TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (caller, key)
) STRICT;
CREATE INDEX idempotency_age ON idempotency (at);
`

/** What a kill leaves behind: text in a pane without its Enter, and the address that a running seat was given. */
const second = `
ALTER TABLE sends ADD COLUMN draft INTEGER NOT NULL DEFAULT 0;
CREATE INDEX standing_drafts ON sends (generation) WHERE draft = 1;
CREATE INDEX started_sends ON sends (id) WHERE outcome = 'started';
ALTER TABLE occupants ADD COLUMN url TEXT;
`

export const rigSchema: FileSchema = {
  major: 1,
  minor: 1,
  steps: [
    { name: "0001_rig", sql: first },
    { name: "0002_cut_off", sql: second }
  ]
}
