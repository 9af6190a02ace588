import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as net from "node:net"
import { startOf } from "../../src/rig/FeedStreams.ts"
import { pass } from "../../src/rig/Retention.ts"
import { Lab } from "./support/Lab.ts"

let lab: Lab
beforeAll(async () => {
  lab = await new Lab().start()
})
afterAll(() => lab.dispose())

interface Frame {
  readonly event: string | undefined
  readonly id: string | undefined
  readonly data: Readonly<Record<string, unknown>>
}

/** Reads frames of a feed until a condition holds. */
const frames = async (
  query: string,
  enough: (all: ReadonlyArray<Frame>) => boolean,
  headers: Readonly<Record<string, string>> = {}
) => {
  const abort = new AbortController()
  const response = await fetch(`${lab.service.url}/api/rig/v1/feed${query}`, {
    headers: { authorization: `Bearer ${lab.service.operatorToken}`, ...headers },
    signal: AbortSignal.any([abort.signal, AbortSignal.timeout(15_000)])
  })
  const all: Array<Frame> = []
  let rest = ""
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? new ReadableStream<Uint8Array>()) {
    rest += decoder.decode(chunk, { stream: true })
    const parts = rest.split("\n\n")
    rest = parts.pop() ?? ""
    for (const part of parts) {
      const field = (name: string) =>
        part
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2)
      const data = field("data")
      if (data !== undefined) all.push({ event: field("event"), id: field("id"), data: JSON.parse(data) })
    }
    if (enough(all)) break
  }
  abort.abort()
  return { headers: response.headers, all }
}

const people = (count: number, from: number) =>
  Effect.runPromise(
    Effect.forEach(
      Array.from({ length: count }, (_, index) => from + index),
      (index) =>
        lab.service.store.write((tx) => {
          tx.asks.addPerson(`p${index}`, "x".repeat(20), `hash${index}`, tx.wall)
          tx.tell("people.changed", `p${index}`)
        }),
      { concurrency: 50 }
    )
  )

const cursors = (all: ReadonlyArray<Frame>) =>
  all.filter(({ event }) => event === undefined).map(({ data }) => Number(data["cursor"]))
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

describe("the feed", () => {
  it("is numbered from one without a gap, also where a write was refused, and replays while events are written [RIG-290, RIG-291, RIG-292]", async () => {
    await people(40, 0)
    assert.strictEqual((await lab.api("addPerson", {}, { id: "p1", name: "x" })).body["code"], "person_exists")
    const reading = frames("?after=0", (all) => cursors(all).length === 100)
    await people(60, 100)
    const { headers, all } = await reading
    assert.strictEqual(headers.get("content-type"), "text/event-stream; charset=utf-8")
    assert.strictEqual(headers.get("cache-control"), "no-store")
    assert.strictEqual(all[0]?.event, "tackroom.open")
    assert.deepStrictEqual(all[0]?.data["after"], 0)
    assert.strictEqual(all.filter(({ event }) => event === "tackroom.synced").length <= 1, true)
    assert.deepStrictEqual(cursors(all), range(1, 100))
    assert.deepStrictEqual(
      all.filter(({ event }) => event === undefined).map(({ id }) => id),
      range(1, 100).map(String)
    )
    assert.isTrue(all.filter(({ event }) => event !== undefined).every(({ id }) => id === undefined))
    const last = all.findLast(({ event }) => event === undefined)?.data ?? {}
    assert.hasAllKeys(last, ["cursor", "type", "at", "data"])
  })

  it("goes on behind a list at its position, and from the last id of a stream that broke [RIG-290, RIG-292]", async () => {
    const list = await lab.api("listPeople")
    const position = Number(list.body["feedCursor"])
    assert.strictEqual(position, lab.head)
    const broken = frames(`?after=${position - 10}`, (all) => cursors(all).length >= 3, {
      "last-event-id": String(position - 5)
    })
    assert.deepStrictEqual(cursors((await broken).all).slice(0, 3), range(position - 4, position - 2))
    // Without a position the stream is live from the head that its first frame names.
    const opened = Promise.withResolvers<void>()
    const live = frames("", (all) => {
      if (all.length > 0) opened.resolve()
      return cursors(all).length === 1
    })
    await opened.promise
    await people(1, 900)
    const { all } = await live
    assert.deepStrictEqual([all[0]?.data["head"], cursors(all)], [position, [position + 1]])
  })

  it("answers a cursor that cannot be followed with a reset, then as it was asked to [RIG-293]", async () => {
    const known = { head: 50, oldest: 11, journalId: "jrn_1" }
    const start = (cursor: string | undefined, fields: Readonly<Record<string, string>> = {}) =>
      startOf({ cursor, journalId: undefined, onReset: undefined, ...fields }, known)
    assert.deepStrictEqual(start("10"), { _tag: "From", after: 10 })
    assert.deepStrictEqual(start(undefined), { _tag: "From", after: 50 })
    const reasons = ["9", "51", "x", "1.5", "-1"].map((cursor) => {
      const found = start(cursor)
      return found._tag === "Reset" ? `${found.frame.reason} ${found.frame.resumedFrom}` : "from"
    })
    assert.deepStrictEqual(reasons, ["trimmed 10", "ahead 10", "malformed 10", "malformed 10", "malformed 10"])
    const closed = start("9", { onReset: "close" })
    assert.deepStrictEqual(closed._tag === "Reset" && closed.frame, {
      reason: "trimmed",
      head: 50,
      journalId: "jrn_1",
      resumedFrom: null,
      oldest: 11
    })
    const { all } = await frames("?after=zzz&onReset=close", () => false)
    assert.deepStrictEqual(
      all.map(({ event, data }) => [event, data["reason"]]),
      [
        ["tackroom.open", undefined],
        ["tackroom.reset", "malformed"]
      ]
    )
    const replaced = await frames("?after=1&journalId=jrn_other", (seen) => cursors(seen).length >= 2)
    assert.strictEqual(replaced.all[1]?.data["reason"], "journal_replaced")
    assert.deepStrictEqual(cursors(replaced.all).slice(0, 2), [1, 2])
    await Effect.runPromise(pass(lab.service.store, 20))
    const trimmed = await frames("?after=1&onReset=tail", (seen) => seen.length >= 3)
    assert.deepInclude(trimmed.all[1]?.data ?? {}, { reason: "trimmed", oldest: lab.head - 19, resumedFrom: lab.head })
  })

  it("cuts a subscriber that does not read and delays nobody [RIG-294]", async () => {
    const url = new URL(lab.service.url)
    const slow = net.connect(Number(url.port), "127.0.0.1")
    slow.write(
      `GET /api/rig/v1/feed HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${lab.service.operatorToken}\r\n\r\n`
    )
    await new Promise((resolve) => slow.once("readable", resolve))
    slow.on("error", () => undefined)
    const closed = new Promise((resolve) => slow.once("close", resolve))
    const head = lab.head
    const quick = frames(`?after=${head}`, (all) => cursors(all).length === 400)
    // Each event of these is some 40 KB: far more than a subscriber may leave unread, and than a socket holds.
    await people(400, 2_000)
    assert.lengthOf(
      (await quick).all.filter(({ event }) => event === "tackroom.overflow"),
      0
    )
    // It reads nothing, so it learns only by what it writes that the connection is gone. Blank lines ask for nothing.
    const writing = setInterval(() => slow.write("\r\n"), 100)
    await closed
    clearInterval(writing)
    slow.destroy()
  })
})
