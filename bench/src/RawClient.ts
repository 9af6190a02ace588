/**
 * The smallest client of a program that speaks JSON, one object per line: ids, pending requests, nothing else. The same
 * code drives our host, its baselines and its peers, so that what it costs falls on all of them.
 */
import type { MeasuredProcess } from "./MeasuredProcess.ts"

export type Json = Readonly<Record<string, unknown>>

interface Incoming {
  readonly id?: number | string | null
  readonly method?: string
  readonly params?: Json
  readonly result?: unknown
  readonly error?: { readonly message?: string }
}

interface Pending {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

const newline = 10

export class RawClient {
  readonly #program: MeasuredProcess
  readonly #withVersion: boolean
  readonly #pending = new Map<number, Pending>()
  readonly #listeners = new Set<(method: string, params: Json) => void>()
  #rest: Buffer | undefined
  #nextId = 0

  /** `withVersion: false` leaves out the `jsonrpc` field, as Codex wants it. */
  constructor(program: MeasuredProcess, options: { readonly withVersion?: boolean } = {}) {
    this.#program = program
    this.#withVersion = options.withVersion ?? true
    program.child.stdout.on("data", (chunk: Buffer) => this.#take(chunk))
    void this.#rejectAtEnd()
  }

  request<A = Json>(method: string, params: Json = {}): Promise<A> {
    this.#nextId += 1
    const id = this.#nextId
    return new Promise<A>((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as (result: unknown) => void, reject })
      this.#write({ id, method, params })
    })
  }

  notify(method: string, params?: Json): void {
    this.#write({ method, ...(params === undefined ? {} : { params }) })
  }

  /** Calls the listener with the params of each notification of that method. */
  each(method: string, listener: (params: Json) => void): void {
    this.#listeners.add((name, params) => {
      if (name === method) listener(params)
    })
  }

  /** Resolves with the params of the first notification that satisfies the test. */
  next(method: string, test: (params: Json) => boolean = () => true): Promise<Json> {
    return new Promise((resolve) => {
      const listener = (name: string, params: Json) => {
        if (name !== method || !test(params)) return
        this.#listeners.delete(listener)
        resolve(params)
      }
      this.#listeners.add(listener)
    })
  }

  async #rejectAtEnd(): Promise<void> {
    const code = await this.#program.exited
    const error = new Error(`the program ended with ${code}: ${this.#program.stderrTail().slice(-500)}`)
    for (const pending of this.#pending.values()) pending.reject(error)
    this.#pending.clear()
  }

  #write(message: Json): void {
    this.#program.child.stdin.write(`${JSON.stringify(this.#withVersion ? { jsonrpc: "2.0", ...message } : message)}\n`)
  }

  #take(chunk: Buffer): void {
    let from = 0
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      const piece = chunk.subarray(from, at)
      from = at + 1
      const line = this.#rest === undefined ? piece : Buffer.concat([this.#rest, piece])
      this.#rest = undefined
      if (line.length > 0) this.#dispatch(JSON.parse(line.toString("utf8")) as Incoming)
    }
    if (from === chunk.length) return
    const piece = chunk.subarray(from)
    this.#rest = this.#rest === undefined ? piece : Buffer.concat([this.#rest, piece])
  }

  #dispatch(message: Incoming): void {
    if (message.method !== undefined) {
      for (const listener of this.#listeners) listener(message.method, message.params ?? {})
      return
    }
    const pending = typeof message.id === "number" ? this.#pending.get(message.id) : undefined
    if (pending === undefined || typeof message.id !== "number") return
    this.#pending.delete(message.id)
    if (message.error === undefined) pending.resolve(message.result)
    else pending.reject(new Error(JSON.stringify(message.error)))
  }
}

/** Makes `count` requests, at most `outstanding` at a time; answers how many a second. */
export const requestRate = async (
  send: (n: number) => Promise<unknown>,
  count: number,
  outstanding: number
): Promise<number> => {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) {
      const n = next
      next += 1
      await send(n)
    }
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: outstanding }, lane))
  return count / ((performance.now() - began) / 1_000)
}
