/**
 * The host's tables in the SQLite store: the store extension `host` (run-protocol 6.1, D-12).
 *
 * It owns the SQL behind `HostStore`. Values that are no ids, states or numbers are JSON text. An operation runs in the
 * transaction of the runtime's call it came with, and commits or fails with it. Tables of teams, memory and schedules come
 * with their features, as later migrations.
 */
import type { SqliteStoreExtension, SqliteTables } from "@tackroom/sdk/stores/sqlite"
import type { UsageTotals } from "@tackroom/sdk/effect"
import type { HostGrant, HostRun, HostSession, KeptDefinition, PendingRow } from "./HostRows.ts"
import { extensionName, type HostOps, type HostQueries } from "./HostStore.ts"

const schema = `
  CREATE TABLE hr_session (
    session_id TEXT PRIMARY KEY, lead_id TEXT NOT NULL, agent_id TEXT NOT NULL, role TEXT NOT NULL,
    definition TEXT NOT NULL, model TEXT NOT NULL, sandbox TEXT NOT NULL, workspace TEXT NOT NULL, name TEXT,
    owner TEXT NOT NULL, creation_id TEXT, params_digest TEXT NOT NULL, created_at INTEGER NOT NULL, closed_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX hr_session_creation ON hr_session (owner, creation_id) WHERE creation_id IS NOT NULL;
  CREATE INDEX hr_session_lead ON hr_session (lead_id);

  CREATE TABLE hr_run (
    session_id TEXT NOT NULL, submission_id TEXT NOT NULL, state TEXT NOT NULL, text_digest TEXT NOT NULL, turn_id TEXT,
    start_cursors TEXT NOT NULL, end_cursors TEXT, status TEXT, failure TEXT, output TEXT, error TEXT,
    created_at INTEGER NOT NULL, ended_at INTEGER, ordinal INTEGER NOT NULL,
    PRIMARY KEY (session_id, submission_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX hr_run_order ON hr_run (session_id, ordinal);
  CREATE INDEX hr_run_turn ON hr_run (session_id, turn_id);
  CREATE UNIQUE INDEX hr_run_open ON hr_run (session_id) WHERE ended_at IS NULL;

  CREATE TABLE hr_grant (
    session_id TEXT NOT NULL, qualified_name TEXT NOT NULL, binding TEXT NOT NULL, interaction_id TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, qualified_name)
  ) STRICT, WITHOUT ROWID;`

interface SessionColumns {
  readonly session_id: string
  readonly lead_id: string
  readonly agent_id: string
  readonly role: HostSession["role"]
  readonly definition: string
  readonly model: string
  readonly sandbox: string
  readonly workspace: string
  readonly name: string | null
  readonly owner: string
  readonly creation_id: string | null
  readonly params_digest: string
  readonly created_at: number
  readonly closed_at: number | null
}

interface RunColumns {
  readonly session_id: string
  readonly submission_id: string
  readonly state: HostRun["state"]
  readonly text_digest: string
  readonly turn_id: string | null
  readonly start_cursors: string
  readonly end_cursors: string | null
  readonly status: HostRun["status"]
  readonly failure: HostRun["failure"]
  readonly output: string | null
  readonly error: string | null
  readonly created_at: number
  readonly ended_at: number | null
}

interface SummaryColumns {
  readonly activity: number
  readonly active: string | null
  readonly latest: string | null
  readonly waiting: number
}

interface ArtifactReference {
  readonly path: string
  readonly artifactId: string
  readonly bytes: number
}

interface GrantColumns {
  readonly session_id: string
  readonly qualified_name: string
  readonly binding: string
  readonly interaction_id: string
  readonly granted_at: number
}

/** Written by this module alone, so read back as what it wrote. */
const json = <A>(text: string): A => JSON.parse(text) as A
const optionalJson = <A>(text: string | null): A | null => (text === null ? null : json<A>(text))
const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

/** The definition that was read last: each turn reads its session's, and its instructions or its script may be long. */
let lastDefinition: { readonly text: string; readonly value: KeptDefinition } | undefined

const definitionOf = (text: string): KeptDefinition => {
  if (lastDefinition?.text !== text) lastDefinition = { text, value: json(text) }
  return lastDefinition.value
}

const sessionOf = (row: SessionColumns): HostSession => ({
  sessionId: row.session_id,
  leadId: row.lead_id,
  agentId: row.agent_id,
  role: row.role,
  definition: definitionOf(row.definition),
  model: json(row.model),
  sandbox: json(row.sandbox),
  workspace: row.workspace,
  name: row.name,
  owner: row.owner,
  creationId: row.creation_id,
  paramsDigest: row.params_digest,
  createdAt: row.created_at,
  closedAt: row.closed_at
})

const runOf = (row: RunColumns): HostRun => ({
  sessionId: row.session_id,
  submissionId: row.submission_id,
  state: row.state,
  textDigest: row.text_digest,
  turnId: row.turn_id,
  startCursors: json(row.start_cursors),
  endCursors: optionalJson(row.end_cursors),
  status: row.status,
  failure: row.failure,
  output: optionalJson(row.output),
  error: optionalJson(row.error),
  createdAt: row.created_at,
  endedAt: row.ended_at
})

const grantOf = (row: GrantColumns): HostGrant => ({
  sessionId: row.session_id,
  qualifiedName: row.qualified_name,
  binding: row.binding,
  interactionId: row.interaction_id,
  grantedAt: row.granted_at
})

type Ops = { readonly [K in keyof HostOps]: (db: SqliteTables, args: HostOps[K]) => number }

const ops: Ops = {
  putSession: (db, s) =>
    db.run(
      `INSERT INTO hr_session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      s.sessionId,
      s.leadId,
      s.agentId,
      s.role,
      JSON.stringify(s.definition),
      JSON.stringify(s.model),
      JSON.stringify(s.sandbox),
      s.workspace,
      s.name,
      s.owner,
      s.creationId,
      s.paramsDigest,
      s.createdAt,
      s.closedAt
    ),
  closeSession: (db, { at, sessionId }) =>
    db.run("UPDATE hr_session SET closed_at = ? WHERE session_id = ? AND closed_at IS NULL", at, sessionId),
  removeSession: (db, { sessionId }) =>
    ["hr_run", "hr_grant", "hr_session"].reduce(
      (rows, table) => rows + db.run(`DELETE FROM ${table} WHERE session_id = ?`, sessionId),
      0
    ),
  putRun: (db, r) =>
    db.run(
      `INSERT INTO hr_run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
         (SELECT COALESCE(MAX(ordinal), 0) + 1 FROM hr_run WHERE session_id = ?))
       ON CONFLICT (session_id, submission_id) DO NOTHING`,
      r.sessionId,
      r.submissionId,
      r.state,
      r.textDigest,
      r.turnId,
      JSON.stringify(r.startCursors),
      text(r.endCursors),
      r.status,
      r.failure,
      text(r.output),
      text(r.error),
      r.createdAt,
      r.endedAt,
      r.sessionId
    ),
  endRun: (db, r) =>
    db.run(
      `UPDATE hr_run SET state = 'terminal', status = ?, failure = ?, output = ?, error = ?, end_cursors = ?, ended_at = ?
       WHERE session_id = ? AND turn_id = ? AND ended_at IS NULL`,
      r.status,
      r.failure,
      text(r.output),
      text(r.error),
      text(r.endCursors),
      r.endedAt,
      r.sessionId,
      r.turnId
    ),
  putGrant: (db, g) =>
    db.run(
      "INSERT OR REPLACE INTO hr_grant VALUES (?, ?, ?, ?, ?)",
      g.sessionId,
      g.qualifiedName,
      g.binding,
      g.interactionId,
      g.grantedAt
    ),
  removeGrant: (db, { qualifiedName, sessionId }) =>
    db.run("DELETE FROM hr_grant WHERE session_id = ? AND qualified_name = ?", sessionId, qualifiedName),
  removeGrants: (db, { sessionId }) => db.run("DELETE FROM hr_grant WHERE session_id = ?", sessionId)
}

type Queries = {
  readonly [K in keyof HostQueries]: (db: SqliteTables, args: HostQueries[K]["args"]) => HostQueries[K]["result"]
}

/** Written by the runtime; read as far as a run shows it. */
interface PendingColumns {
  readonly id: string
  readonly session_id: string
  readonly turn_id: string | null
  readonly kind: PendingRow["kind"]
  readonly native_id: string
  readonly request: string
  readonly created_at: number
}

const pendingOf = (row: PendingColumns): PendingRow => ({
  id: row.id,
  sessionId: row.session_id,
  turnId: row.turn_id,
  kind: row.kind,
  nativeId: row.native_id,
  request: json(row.request),
  createdAt: row.created_at
})

const headOf = (db: SqliteTables, sessionId: string): number =>
  db.get<{ readonly head: number }>("SELECT head FROM tr_session WHERE id = ?", sessionId)?.head ?? 0

const pendingRows = (db: SqliteTables, sessionId: string): ReadonlyArray<PendingRow> =>
  db
    .all<PendingColumns>(
      `SELECT id, session_id, turn_id, kind, native_id, request, created_at FROM tr_interaction
       WHERE state = 'pending' AND session_id = ? ORDER BY created_at, id`,
      sessionId
    )
    .map(pendingOf)

/** Every response of the native agent reports its own tokens, so that they add up; null where none was reported. */
const usageColumns = `
  SELECT SUM(observation ->> '$.tokens.input') AS inputTokens,
    SUM(observation ->> '$.tokens.output') AS outputTokens,
    SUM(observation ->> '$.tokens.cache.read') AS cachedInputTokens,
    COUNT(CASE WHEN observation ->> '$.kind' = 'round' AND COALESCE(observation ->> '$.attempt', 1) <= 1 THEN 1 END)
      AS rounds
  FROM tr_usage`

const noUsage: UsageTotals = { inputTokens: null, outputTokens: null, cachedInputTokens: null, rounds: 0 }

const sessionUsage = (db: SqliteTables, sessionId: string): UsageTotals =>
  db.get<UsageTotals & object>(`${usageColumns} WHERE session_id = ?`, sessionId) ?? noUsage

const activeRun = (db: SqliteTables, sessionId: string): HostRun | null =>
  found(db.get<RunColumns>("SELECT * FROM hr_run WHERE session_id = ? AND ended_at IS NULL", sessionId), runOf)

const latestRun = (db: SqliteTables, sessionId: string): HostRun | null =>
  found(
    db.get<RunColumns>(
      `SELECT * FROM hr_run WHERE session_id = ? AND state <> 'not_accepted' ORDER BY ordinal DESC LIMIT 1`,
      sessionId
    ),
    runOf
  )

const grantRows = (db: SqliteTables, sessionId: string, limit: number): ReadonlyArray<HostGrant> =>
  db
    .all<GrantColumns>(
      "SELECT * FROM hr_grant WHERE session_id = ? ORDER BY granted_at DESC, qualified_name LIMIT ?",
      sessionId,
      limit
    )
    .map(grantOf)

/** Grants that `session/state` lists. */
const shownGrants = 500

const found = <Row, A>(row: Row | undefined, map: (row: Row) => A): A | null => (row === undefined ? null : map(row))

const queries: Queries = {
  session: (db, { sessionId }) =>
    found(db.get<SessionColumns>("SELECT * FROM hr_session WHERE session_id = ?", sessionId), sessionOf),
  sessionByCreation: (db, { creationId, owner }) =>
    found(
      db.get<SessionColumns>("SELECT * FROM hr_session WHERE owner = ? AND creation_id = ?", owner, creationId),
      sessionOf
    ),
  sessions: (db, { after, agentId, includeClosed, limit }) =>
    db
      .all<SessionColumns & SummaryColumns>(
        `SELECT h.*, s.updated_at AS activity,
           (SELECT submission_id FROM hr_run r WHERE r.session_id = h.session_id AND r.ended_at IS NULL) AS active,
           (SELECT submission_id FROM hr_run r WHERE r.session_id = h.session_id AND r.state <> 'not_accepted'
             ORDER BY ordinal DESC LIMIT 1) AS latest,
           EXISTS (SELECT 1 FROM tr_interaction i WHERE i.state = 'pending' AND i.session_id = h.session_id) AS waiting
         FROM hr_session h JOIN tr_session s ON s.id = h.session_id
         WHERE h.role = 'lead' AND (? IS NULL OR h.agent_id = ?) AND (? OR h.closed_at IS NULL)
           AND (? IS NULL OR s.updated_at < ? OR (s.updated_at = ? AND h.session_id < ?))
         ORDER BY s.updated_at DESC, h.session_id DESC LIMIT ?`,
        agentId ?? null,
        agentId ?? null,
        includeClosed ? 1 : 0,
        after?.activity ?? null,
        after?.activity ?? null,
        after?.activity ?? null,
        after?.sessionId ?? null,
        limit
      )
      .map((row) => ({
        session: sessionOf(row),
        activity: row.activity,
        activeSubmission: row.active,
        latestSubmission: row.latest,
        waiting: row.waiting === 1
      })),
  observe: (db, { sessionId, submissionId }) => {
    const run =
      submissionId === undefined
        ? (activeRun(db, sessionId) ?? latestRun(db, sessionId))
        : found(
            db.get<RunColumns>(
              "SELECT * FROM hr_run WHERE session_id = ? AND submission_id = ?",
              sessionId,
              submissionId
            ),
            runOf
          )
    return {
      run,
      head: headOf(db, sessionId),
      pending: run === null || run.endedAt !== null ? [] : pendingRows(db, sessionId)
    }
  },
  turnUsage: (db, { after, sessionId, turnId, upTo }) =>
    db.get<UsageTotals & object>(
      `${usageColumns} WHERE session_id = ? AND turn_id = ? AND sequence > ? AND sequence <= ?`,
      sessionId,
      turnId,
      after,
      upTo
    ) ?? noUsage,
  view: (db, { sessionId }) => {
    const active = activeRun(db, sessionId)
    return {
      active,
      latest: latestRun(db, sessionId),
      head: headOf(db, sessionId),
      pending: active === null ? [] : pendingRows(db, sessionId),
      grants: grantRows(db, sessionId, shownGrants),
      usage: sessionUsage(db, sessionId)
    }
  },
  textArtifact: (db, { after, sessionId, upTo }) => {
    const row = db.get<{ readonly artifacts: string }>(
      `SELECT artifacts FROM tr_event WHERE session_id = ? AND seq > ? AND seq <= ? AND type = 'text-end'
         AND artifacts IS NOT NULL AND payload ->> '$.channel' = 'text' ORDER BY seq DESC LIMIT 1`,
      sessionId,
      after,
      upTo
    )
    const named = row === undefined ? undefined : json<ReadonlyArray<ArtifactReference>>(row.artifacts)
    const whole = named?.find(({ path }) => path === "/text")
    return whole === undefined ? null : { artifactId: whole.artifactId, bytes: whole.bytes }
  },
  argumentsArtifact: (db, { callId, sessionId, turnId }) =>
    db.get<{ readonly id: string | null }>(
      `SELECT payload ->> '$.metadata.arguments_artifact_id' AS id FROM tr_event
       WHERE session_id = ? AND turn_id = ? AND type = 'tool-input' AND payload ->> '$.toolCallId' = ?
       ORDER BY seq DESC LIMIT 1`,
      sessionId,
      turnId,
      callId
    )?.id ?? null,
  run: (db, { sessionId, submissionId }) =>
    found(
      db.get<RunColumns>("SELECT * FROM hr_run WHERE session_id = ? AND submission_id = ?", sessionId, submissionId),
      runOf
    ),
  activeRun: (db, { sessionId }) => activeRun(db, sessionId),
  runs: (db, { admittedOnly, limit, sessionId }) =>
    db
      .all<RunColumns>(
        `SELECT * FROM hr_run WHERE session_id = ? AND (? = 0 OR state <> 'not_accepted') ORDER BY ordinal DESC LIMIT ?`,
        sessionId,
        admittedOnly ? 1 : 0,
        limit
      )
      .map(runOf),
  runOfTurn: (db, { sessionId, turnId }) =>
    found(db.get<RunColumns>("SELECT * FROM hr_run WHERE session_id = ? AND turn_id = ?", sessionId, turnId), runOf),
  grant: (db, { qualifiedName, sessionId }) =>
    found(
      db.get<GrantColumns>(
        "SELECT * FROM hr_grant WHERE session_id = ? AND qualified_name = ?",
        sessionId,
        qualifiedName
      ),
      grantOf
    )
}

/** The extension to give to `createSqliteRuntimeStore`. */
export const hostTables: SqliteStoreExtension = {
  name: extensionName,
  migrations: [{ id: "0001", name: "host", sql: schema }],
  ops,
  queries
}
