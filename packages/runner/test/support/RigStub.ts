/**
 * A rig service's four routes on loopback, on raw JSON and strict about it: whatever a runner sends that the contract does
 * not allow is a fault, and a test with a fault fails. What is answered is the test's to say.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { Told } from "./Told.ts"

export type Json = Readonly<Record<string, unknown>>

export interface Answer {
  readonly status: number
  readonly body: unknown
  /** What is sent instead of JSON. */
  readonly raw?: string
}

export interface Post extends Json {
  readonly hookEvent: string
  readonly subtype: string
  readonly sequence: number
  readonly occurredAt: string
}

/** Answers, waits before it does, or answers never. */
export type Handler<A> = (body: A, n: number) => Answer | Promise<Answer> | "hang" | "reset"

export const token = "canary-token-0123456789abcdef"
export const seat = {
  sessionName: "dev-builder@mill",
  nodeId: "nod_01JD0000000000000000000000",
  generation: "9b2f0c1e-1111-4222-8333-444455556666"
}

export const ok = (body: Json = {}): Answer => ({ status: 200, body: { ok: true, ...body } })
export const refusal = (status: number, code: string): Answer => ({ status, body: { ok: false, code } })

const requestsPath = "/api/activity/permission-requests"

const postFields = ["sessionName", "nodeId", "runtime", "generation", "sequence", "occurredAt", "hookEvent", "subtype"]
const extraFields = ["turnId", "askId", "livenessSeconds"]
const submitFields = [
  "sessionName",
  "nodeId",
  "generation",
  "nativeRef",
  "turnId",
  "requestId",
  "toolCall",
  "options",
  "occurredAt"
]

export class RigStub {
  readonly posts = new Told<Post>()
  readonly submits = new Told<Json>()
  readonly reads = new Told<{ readonly askId: string; readonly wait: string | null }>()
  readonly withdraws = new Told<{ readonly askId: string; readonly reason: unknown }>()
  readonly faults: Array<string> = []
  /** Most hook posts that were in flight at once. */
  mostPosts = 0
  onPost: Handler<Post> = () => ok({ activity: {} })
  onSubmit: Handler<Json> = (_, n) => ok({ askId: `ask_${n}`, created: true })
  onRead: Handler<string> = () => "hang"
  onWithdraw: Handler<string> = (askId) => ok({ askId, state: "withdrawn" })
  /** Answers submits before their body is read. */
  refuseEarly: Answer | undefined
  #server: Server
  #port = 0
  #inFlight = 0

  private constructor() {
    this.#server = this.#make()
  }

  static async listen(): Promise<RigStub> {
    const rig = new RigStub()
    await rig.#listen(0)
    return rig
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }
  get port(): number {
    return this.#port
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** Gone, and there again at the same address. */
  async restart(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeAllConnections()
    await closed
    this.#server = this.#make()
    await this.#listen(this.#port)
  }

  /** Pairs of event and subtype in the order in which they came. */
  get story(): ReadonlyArray<string> {
    return this.posts.all.map(({ hookEvent, subtype }) => `${hookEvent}/${subtype}`)
  }

  post(pair: string, n = 1): Promise<Post> {
    return this.posts.nth(n, ({ hookEvent, subtype }) => `${hookEvent}/${subtype}` === pair)
  }

  #listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject)
      this.#server.listen(port, "127.0.0.1", () => {
        const address = this.#server.address()
        this.#port = typeof address === "object" && address !== null ? address.port : 0
        resolve()
      })
    })
  }

  #make(): Server {
    return createServer((request, response) => {
      if (this.refuseEarly !== undefined && request.url === requestsPath) {
        response.writeHead(this.refuseEarly.status, { "content-type": "application/json", connection: "close" })
        response.end(JSON.stringify(this.refuseEarly.body))
        return
      }
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => void this.#take(request, Buffer.concat(chunks).toString("utf8"), response))
    })
  }

  #expect(holds: boolean, fault: string): void {
    if (!holds) this.faults.push(fault)
  }

  async #take(request: IncomingMessage, text: string, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", this.url)
    this.#expect(request.headers.authorization === `Bearer ${token}`, "no bearer token")
    let body: Json = {}
    if (request.method === "POST") {
      this.#expect(request.headers["content-type"] === "application/json", "content type is not JSON")
      body = JSON.parse(text)
    } else this.#expect(text === "", "a GET has a body")

    const answer = await this.#route(request.method ?? "", url, body)
    if (answer === "hang") return
    if (answer === "reset") return void request.socket.destroy()
    response.writeHead(answer.status, { "content-type": "application/json" })
    response.end(answer.raw ?? JSON.stringify(answer.body))
  }

  async #route(method: string, url: URL, body: Json): Promise<Answer | "hang" | "reset"> {
    const [, askId = "", verb] =
      /^\/api\/activity\/permission-requests\/([^/]+)(\/withdraw)?$/u.exec(url.pathname) ?? []
    if (method === "POST" && url.pathname === "/api/activity/hooks") {
      this.#checkPost(body)
      this.posts.add(body as Post)
      this.mostPosts = Math.max(this.mostPosts, ++this.#inFlight)
      const answer = await this.onPost(body as Post, this.posts.all.length)
      this.#inFlight -= 1
      return answer
    }
    if (method === "POST" && url.pathname === requestsPath) {
      this.#checkSubmit(body)
      this.submits.add(body)
      return this.onSubmit(body, this.submits.all.length)
    }
    if (method === "GET" && askId !== "" && verb === undefined) {
      const wait = url.searchParams.get("waitSeconds")
      this.#expect(wait !== null && /^\d+$/u.test(wait) && Number(wait) <= 25, `waitSeconds is ${wait}`)
      this.reads.add({ askId, wait })
      return this.onRead(askId, this.reads.all.length)
    }
    if (method === "POST" && askId !== "" && verb !== undefined) {
      this.#expect(
        ["turn_cancelled", "turn_ended", "exited"].includes(String(body["reason"])),
        `withdraw reason ${String(body["reason"])}`
      )
      this.withdraws.add({ askId, reason: body["reason"] })
      return this.onWithdraw(askId, this.withdraws.all.length)
    }
    this.#expect(false, `${method} ${url.pathname}`)
    return refusal(404, "not_found")
  }

  #checkPost(body: Json): void {
    for (const field of postFields) this.#expect(field in body, `a post has no ${field}`)
    for (const field of Object.keys(body)) {
      this.#expect([...postFields, ...extraFields].includes(field), `a post has ${field}`)
    }
    this.#expect(body["sessionName"] === seat.sessionName, "another session name")
    this.#expect(body["nodeId"] === seat.nodeId, "another node")
    this.#expect(body["generation"] === seat.generation, "another generation")
    this.#expect(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u.test(String(body["occurredAt"])), "occurredAt")
    const last = this.posts.all.at(-1)
    if (last === undefined) return
    // A retry repeats its number and time.
    this.#expect(Number(body["sequence"]) >= last.sequence, "sequence falls")
    this.#expect(String(body["occurredAt"]) >= last.occurredAt, "occurredAt falls")
  }

  #checkSubmit(body: Json): void {
    for (const field of submitFields) this.#expect(field in body, `a submit has no ${field}`)
    for (const field of Object.keys(body)) this.#expect(submitFields.includes(field), `a submit has ${field}`)
  }
}
