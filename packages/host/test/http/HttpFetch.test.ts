/** The transport of models and MCP servers against servers that are fast, break off, or speak nonsense: raw sockets. */
import { createServer, type Socket } from "node:net"
import type { AddressInfo } from "node:net"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { httpFetch } from "../../src/http/HttpFetch.ts"

interface Raw {
  readonly url: string
  readonly connections: () => number
}

/** Answers each request on each connection with what `answer` writes. */
const raw = (answer: (socket: Socket, head: string) => void) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<Raw & { readonly close: () => Promise<void> }>((resolve) => {
          const sockets = new Set<Socket>()
          let connections = 0
          const server = createServer((socket) => {
            connections += 1
            sockets.add(socket)
            socket.on("error", () => {})
            socket.on("close", () => sockets.delete(socket))
            socket.on("data", (head) => answer(socket, head.toString("latin1")))
          })
          server.listen(0, "127.0.0.1", () => {
            const { port } = server.address() as AddressInfo
            resolve({
              url: `http://127.0.0.1:${port}/`,
              connections: () => connections,
              close: () =>
                new Promise((closed) => {
                  for (const socket of sockets) socket.destroy()
                  server.close(() => closed())
                })
            })
          })
        })
    ),
    (server) => Effect.promise(() => server.close())
  )

const untilEnd = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
const mebibyte = 1_048_576

/** Writes `count` blocks as fast as they are taken, ends the body by ending the connection. */
const pour = (socket: Socket, block: Buffer, count: number, onTaken = (_bytes: number): void => {}): void => {
  let left = count
  const more = (): void => {
    while (left > 0 && !socket.destroyed) {
      left -= 1
      if (!socket.write(block, () => onTaken(block.length))) return void socket.once("drain", more)
    }
    socket.end()
  }
  more()
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Long enough for whatever is on its way over loopback. */
const turns = async () => {
  for (let left = 20; left > 0; left--) await turn()
}

/** Reads to the end with `pause` after each chunk. */
const sizeOf = async (response: Response, pause: () => Promise<void>, onRead = (_bytes: number): void => {}) => {
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    onRead(chunk.byteLength)
    await pause()
  }
  return size
}

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => assert.fail("it did not fail"),
    (error: unknown) => error
  )

describe("a body that ends with its connection", () => {
  // With the `fetch` of Node, the end of the connection in the back of a reader throws where nobody can catch it.
  it.live("is read whole by a reader that is behind when the connection ends", () =>
    Effect.gen(function* () {
      for (const count of [3_000, 5_000, 6_000, 8_000, 40_000]) {
        const text = `data: {"d":${count}}\n\n`
        for (let round = 0; round < 4; round++) {
          let onEnd = (): void => {}
          const ended = new Promise<void>((resolve) => (onEnd = resolve))
          const server = yield* raw((socket) => {
            socket.once("finish", () => onEnd())
            socket.write(untilEnd)
            pour(socket, Buffer.from(text), count)
          })
          const response = yield* Effect.promise(() => httpFetch(server.url))
          yield* Effect.promise(() => ended.then(turns))
          const size = yield* Effect.promise(() => sizeOf(response, turns))
          assert.strictEqual(size, count * text.length)
        }
      }
    })
  )

  it.live("holds the server back instead of the memory", () =>
    Effect.gen(function* () {
      const block = Buffer.alloc(65_536, 0x61)
      let taken = 0
      let read = 0
      let most = 0
      const server = yield* raw((socket) => {
        socket.write(untilEnd)
        pour(socket, block, 2_048, (bytes) => {
          taken += bytes
          most = Math.max(most, taken - read)
        })
      })
      const response = yield* Effect.promise(() => httpFetch(server.url))
      const size = yield* Effect.promise(() => sizeOf(response, turn, (bytes) => (read += bytes)))
      assert.strictEqual(size, 128 * mebibyte)
      // The buffers of the two sockets are in it, and the system makes them as large as it likes: a few MiB each.
      assert.isBelow(most, 24 * mebibyte)
    })
  )
})

describe("a request", () => {
  for (const how of ["its signal", "its reader"] as const) {
    it.live(`that ${how} cancels in the middle of the answer ends its connection`, () =>
      Effect.gen(function* () {
        let onClose = (): void => {}
        const closed = new Promise<void>((resolve) => (onClose = resolve))
        const server = yield* raw((socket) => {
          socket.on("close", () => onClose())
          socket.write(untilEnd)
          pour(socket, Buffer.alloc(65_536, 0x61), 100_000)
        })
        const abort = new AbortController()
        const response = yield* Effect.promise(() => httpFetch(server.url, { signal: abort.signal }))
        const reader = response.body?.getReader()
        assert.isTrue(
          (yield* Effect.promise(() => reader?.read() ?? Promise.reject(new Error("no body")))).done === false
        )
        if (how === "its reader") yield* Effect.promise(() => reader?.cancel() ?? Promise.resolve())
        else {
          const reason = new Error("enough")
          abort.abort(reason)
          assert.strictEqual(yield* Effect.promise(() => rejection(reader?.closed ?? Promise.resolve())), reason)
        }
        yield* Effect.promise(() => closed)
      })
    )
  }

  it.live("that is cancelled before the answer fails with the signal's reason", () =>
    Effect.gen(function* () {
      const abort = new AbortController()
      const reason = new Error("never mind")
      const server = yield* raw(() => abort.abort(reason))
      for (const _ of ["during", "before"]) {
        const error = yield* Effect.promise(() => rejection(httpFetch(server.url, { signal: abort.signal })))
        assert.strictEqual(error, reason)
      }
      assert.strictEqual(server.connections(), 1)
    })
  )

  for (const [what, answer] of [
    ["no HTTP", "hello\r\n\r\n"],
    ["a status that none has", "HTTP/1.1 999 OK\r\ncontent-length: 0\r\n\r\n"],
    ["a head that is cut off", "HTTP/1.1 200 OK\r\ncontent-"],
    ["another protocol", "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n"],
    ["nothing", ""]
  ] as const) {
    it.live(`fails when the answer is ${what}`, () =>
      Effect.gen(function* () {
        const server = yield* raw((socket) => void socket.end(answer))
        const error = yield* Effect.promise(() => rejection(httpFetch(server.url)))
        assert.instanceOf(error, TypeError)
        assert.strictEqual(error.message, "fetch failed")
      })
    )
  }

  for (const [what, answer] of [
    ["a body shorter than was said", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"],
    ["chunks without an end", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
    ["chunks that are none", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n"],
    ["text that claims to be compressed", "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nhalf"]
  ] as const) {
    it.live(`fails in its body on ${what}`, () =>
      Effect.gen(function* () {
        const server = yield* raw((socket) => void socket.end(answer))
        const response = yield* Effect.promise(() => httpFetch(server.url))
        const error = yield* Effect.promise(() => rejection(response.text()))
        assert.instanceOf(error, TypeError)
        assert.strictEqual(error.message, "terminated")
      })
    )
  }

  it.live("asks for an answer as it is, reads a compressed one all the same, and uses its connection again", () =>
    Effect.gen(function* () {
      const text = "what it says ".repeat(100_000)
      const packed = gzipSync(text)
      const heads: Array<string> = []
      const server = yield* raw((socket, head) => {
        heads.push(head.toLowerCase())
        socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${packed.length}\r\n\r\n`)
        socket.write(packed)
      })
      for (const _ of [1, 2]) {
        const response = yield* Effect.promise(() => httpFetch(server.url))
        assert.strictEqual(yield* Effect.promise(() => response.text()), text)
        yield* Effect.promise(turn)
      }
      assert.strictEqual(server.connections(), 1)
      for (const head of heads) assert.include(head, "accept-encoding: identity\r\n")
    })
  )
})
