/**
 * Tables in memory, with an undo log in place of a write-ahead log. Rows are kept as the column values a database would
 * hold, so nothing that goes in or comes out is shared with a caller (STO-022).
 */
import { Effect } from "effect"
import type { EventRecord } from "../EventText.ts"
import type { SessionRow } from "../Rows.ts"
import type { ListSessions } from "../RuntimeStore.ts"
import type { Scan } from "../StoreTx.ts"
import {
  decodeListedSession,
  decodeRow,
  encodeColumn,
  encodeRow,
  publicRow,
  tableNames,
  tables,
  type ColumnValue,
  type KeyOf,
  type RowOf,
  type Table,
  type TableName
} from "../Tables.ts"

type Values = ReadonlyArray<ColumnValue>

/** Everything a memory store holds, as a value that can be cloned and kept (STO-021). */
export interface MemorySnapshot {
  readonly journalId: string
  readonly tables: { readonly [Name in TableName]: ReadonlyArray<Values> }
  readonly events: ReadonlyArray<EventRecord>
  readonly chunks: ReadonlyArray<readonly [string, Uint8Array]>
  /** Rows of extension tables, as JSON text, by `extension/table`. */
  readonly extensions: ReadonlyArray<readonly [string, ReadonlyArray<readonly [string, string]>]>
}

/** A table of an extension in memory. Rows are JSON values, copied in and out; keys are the extension's own. */
export interface MemoryTable {
  readonly get: (key: string) => unknown
  readonly put: (key: string, row: unknown) => void
  readonly delete: (key: string) => boolean
  /** Rows in the order of their keys. */
  readonly all: () => ReadonlyArray<{ readonly key: string; readonly row: unknown }>
}

interface Rows {
  readonly all: Map<string, Values>
  /** Keys of a session's rows, for the tables that have one. */
  readonly ofSession: Map<ColumnValue, Set<string>>
}

const compare = (a: ColumnValue, b: ColumnValue): number => {
  if (a === b) return 0
  if (a === null) return -1
  if (b === null) return 1
  return a < b ? -1 : 1
}

const columnOf = (target: Table, name: string) => {
  const index = target.position.get(name) ?? -1
  const column = target.columns[index]
  if (column === undefined) throw new TypeError(`${target.sql} has no column ${name}`)
  return { index, kind: column.kind }
}

const valueOf = (target: Table, values: Values, name: string): ColumnValue =>
  values[target.position.get(name) ?? -1] ?? null

const keyOfValues = (target: Table, values: Values): string =>
  target.key.map((name) => String(valueOf(target, values, name))).join("\0")

const keyOf = (target: Table, key: object): string =>
  target.key
    .map((name) => String(encodeColumn(columnOf(target, name).kind, (key as Record<string, unknown>)[name])))
    .join("\0")

type Test = (values: Values) => boolean

const testOf = <Row>(target: Table, scan: Scan<Row>): Test => {
  const tests: Array<Test> = Object.entries(scan.where ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      const { index, kind } = columnOf(target, name)
      const wanted = encodeColumn(kind, value)
      return (values) => (values[index] ?? null) === wanted
    })
  for (const [bound, sign] of [
    [scan.gt, 1],
    [scan.lt, -1]
  ] as const) {
    if (bound === undefined) continue
    const { index } = columnOf(target, bound[0])
    tests.push((values) => values[index] !== null && compare(values[index] ?? null, bound[1]) === sign)
  }
  return (values) => tests.every((test) => test(values))
}

const orderOf = <Row>(target: Table, scan: Scan<Row>): ((a: Values, b: Values) => number) => {
  const columns = [...(scan.order === undefined ? [] : [scan.order]), ...target.key].map(
    (name) => columnOf(target, name).index
  )
  const sign = scan.descending === true ? -1 : 1
  return (a, b) => {
    for (const index of columns) {
      const order = compare(a[index] ?? null, b[index] ?? null)
      if (order !== 0) return order * sign
    }
    return 0
  }
}

/** Makes the tables of one store, empty or from a snapshot. */
export const makeMemoryTables = (snapshot: MemorySnapshot | undefined) => {
  const rows = Object.fromEntries(
    tableNames.map((name) => [name, { all: new Map(), ofSession: new Map() }])
  ) as unknown as { readonly [Name in TableName]: Rows }
  const journals = new Map<string, Array<EventRecord>>()
  const chunks = new Map<string, Uint8Array>()
  const extensions = new Map<string, Map<string, string>>()
  let undo: Array<() => void> = []

  const index = (target: Table, key: string, values: Values, isPresent: boolean) => {
    if (!target.position.has("sessionId")) return
    const { ofSession } = rows[target.name]
    const session = valueOf(target, values, "sessionId")
    const keys = ofSession.get(session) ?? new Set()
    if (isPresent) keys.add(key)
    else keys.delete(key)
    if (keys.size === 0) ofSession.delete(session)
    else ofSession.set(session, keys)
  }

  const set = (target: Table, key: string, values: Values | undefined) => {
    const { all } = rows[target.name]
    const before = all.get(key)
    if (before !== undefined) index(target, key, before, false)
    if (values === undefined) all.delete(key)
    else {
      all.set(key, values)
      index(target, key, values, true)
    }
    return before
  }

  const change = (target: Table, key: string, values: Values | undefined) => {
    const before = set(target, key, values)
    undo.push(() => set(target, key, before))
  }

  const changeMap = <V>(map: Map<string, V>, key: string, value: V | undefined) => {
    const before = map.get(key)
    if (value === undefined) map.delete(key)
    else map.set(key, value)
    undo.push(() => (before === undefined ? map.delete(key) : map.set(key, before)))
  }

  const dropChunks = (artifactId: string) => {
    for (const key of chunks.keys()) if (key.startsWith(`${artifactId}/`)) changeMap(chunks, key, undefined)
  }

  const journal = (sessionId: string): Array<EventRecord> => {
    const records = journals.get(sessionId) ?? []
    journals.set(sessionId, records)
    return records
  }

  const extensionTable = (name: string): Map<string, string> => {
    const table = extensions.get(name) ?? new Map<string, string>()
    extensions.set(name, table)
    return table
  }

  const values = <Name extends TableName>(name: Name, scan: Scan<RowOf<Name>>): ReadonlyArray<Values> => {
    const target = tables[name]
    const { all, ofSession } = rows[name]
    const sessionId = (scan.where as Record<string, unknown> | undefined)?.["sessionId"]
    const candidates =
      typeof sessionId === "string"
        ? Array.from(ofSession.get(sessionId) ?? [], (key) => all.get(key) ?? [])
        : [...all.values()]
    const found = candidates.filter(testOf(target, scan)).sort(orderOf(target, scan))
    return scan.limit === undefined ? found : found.slice(0, scan.limit)
  }

  if (snapshot !== undefined) {
    for (const name of tableNames) {
      for (const row of snapshot.tables[name]) set(tables[name], keyOfValues(tables[name], row), [...row])
    }
    for (const record of snapshot.events) journal(record.sessionId).push({ ...record })
    for (const [key, bytes] of snapshot.chunks) chunks.set(key, bytes.slice())
    for (const [name, entries] of snapshot.extensions) extensions.set(name, new Map(entries))
  }

  return {
    get: <Name extends TableName>(name: Name, key: KeyOf<Name>) =>
      Effect.sync(() => {
        const found = rows[name].all.get(keyOf(tables[name], key))
        return found === undefined ? undefined : decodeRow(name, found)
      }),
    scan: <Name extends TableName>(name: Name, scan: Scan<RowOf<Name>>) =>
      Effect.sync(() => values(name, scan).map((found) => decodeRow(name, found))),
    put: <Name extends TableName>(name: Name, row: RowOf<Name>) =>
      Effect.sync(() => change(tables[name], keyOf(tables[name], row), encodeRow(tables[name], row))),
    insertIfAbsent: <Name extends TableName>(name: Name, row: RowOf<Name>) =>
      Effect.sync(() => {
        const key = keyOf(tables[name], row)
        if (rows[name].all.has(key)) return false
        change(tables[name], key, encodeRow(tables[name], row))
        return true
      }),
    patch: <Name extends TableName>(name: Name, key: KeyOf<Name>, patch: Partial<RowOf<Name>>) =>
      Effect.sync(() => {
        const target: Table = tables[name]
        const text = keyOf(target, key)
        const before = rows[name].all.get(text)
        if (before === undefined) return
        const after = [...before]
        for (const [column, value] of Object.entries(patch)) {
          const { index: position, kind } = columnOf(target, column)
          after[position] = encodeColumn(kind, value)
        }
        change(target, text, after)
      }),
    remove: <Name extends TableName>(name: Name, key: KeyOf<Name>) =>
      Effect.sync(() => change(tables[name], keyOf(tables[name], key), undefined)),
    insertEvents: (records: ReadonlyArray<EventRecord>) =>
      Effect.sync(() => {
        for (const record of records) {
          const target = journal(record.sessionId)
          target.push(record)
          undo.push(() => target.pop())
        }
      }),
    events: (
      sessionId: string,
      after: number,
      limit: number,
      options?: { readonly maxBytes?: number; readonly types?: ReadonlyArray<string> }
    ) =>
      Effect.sync(() => {
        const page: Array<EventRecord> = []
        let bytes = 0
        for (const record of (journals.get(sessionId) ?? []).slice(after)) {
          if (page.length === limit) break
          if (options?.types !== undefined && !options.types.includes(record.type)) continue
          bytes += record.payload.length
          if (page.length > 0 && bytes > (options?.maxBytes ?? Infinity)) break
          page.push(record)
        }
        return page
      }),
    listSessions: (input: ListSessions): Effect.Effect<ReadonlyArray<SessionRow>> =>
      Effect.sync(() => {
        const { after, limit, archived } = input
        const where = {
          ...(input.workspaceId === undefined ? {} : { workspaceId: input.workspaceId }),
          ...(input.directory === undefined ? {} : { directory: input.directory }),
          ...(input.parentSessionId === undefined ? {} : { parentId: input.parentSessionId }),
          ...(input.owner === undefined ? {} : { owner: input.owner }),
          ...(input.status === undefined ? {} : { status: input.status })
        }
        return values("session", { where })
          .map(decodeListedSession)
          .filter((row) => archived === undefined || (row.archivedAt !== null) === archived)
          .sort((a, b) => b.updatedAt - a.updatedAt || compare(a.id, b.id))
          .filter(
            (row) =>
              after === undefined ||
              row.updatedAt < after.updatedAt ||
              (row.updatedAt === after.updatedAt && row.id > after.id)
          )
          .slice(0, limit)
          .map(publicRow)
      }),
    family: (id: string) =>
      Effect.sync(() => {
        const ids = [id]
        for (const parentId of ids) {
          for (const child of values("session", { where: { parentId } }))
            ids.push(String(valueOf(tables.session, child, "id")))
        }
        return ids
      }),
    purge: (sessionId: string) =>
      Effect.sync(() => {
        let removed = 0
        for (const name of tableNames) {
          if (name === "tombstone" || !tables[name].position.has("sessionId")) continue
          for (const key of Array.from(rows[name].ofSession.get(sessionId) ?? [])) {
            if (name === "artifact") dropChunks(key)
            change(tables[name], key, undefined)
            removed += 1
          }
        }
        removed += journals.get(sessionId)?.length ?? 0
        changeMap(journals, sessionId, undefined)
        return removed
      }),
    putChunk: (artifactId: string, n: number, bytes: Uint8Array) =>
      Effect.sync(() => changeMap(chunks, `${artifactId}/${n}`, bytes.slice())),
    removeChunks: (artifactId: string) => Effect.sync(() => dropChunks(artifactId)),
    chunk: (artifactId: string, n: number) => Effect.sync(() => chunks.get(`${artifactId}/${n}`)?.slice()),

    extension: (extension: string, table: string): MemoryTable => {
      const map = extensionTable(`${extension}/${table}`)
      return {
        get: (key) => {
          const text = map.get(key)
          return text === undefined ? undefined : JSON.parse(text)
        },
        put: (key, row) => changeMap(map, key, JSON.stringify(row)),
        delete: (key) => {
          const isThere = map.has(key)
          changeMap(map, key, undefined)
          return isThere
        },
        all: () =>
          [...map].sort(([a], [b]) => compare(a, b)).map(([key, text]) => ({ key, row: JSON.parse(text) as unknown }))
      }
    },
    /** Forgets how to take the changes back. */
    commit: (): void => {
      undo = []
    },
    /** Takes back everything since the last commit. */
    rollback: (): void => {
      for (const step of undo.toReversed()) step()
      undo = []
    },
    snapshot: (journalId: string): MemorySnapshot => ({
      journalId,
      tables: Object.fromEntries(
        tableNames.map((name) => [name, Array.from(rows[name].all.values(), (row) => row.slice())])
      ) as unknown as MemorySnapshot["tables"],
      events: [...journals.values()].flatMap((records) => records.map((record) => ({ ...record }))),
      chunks: Array.from(chunks, ([key, bytes]) => [key, bytes.slice()] as const),
      extensions: Array.from(extensions, ([name, table]) => [name, [...table]] as const)
    })
  }
}
