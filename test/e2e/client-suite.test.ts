/**
 * One client, two ways to a host: the client's cases over the real program on stdio and over the host in this process, with
 * a model behind a vendor's wire (D-27); and what only a host in this process must not do (RUN-590 to RUN-592).
 */
import { assert, describe, it } from "@effect/vitest"
import { LLMock } from "@copilotkit/aimock"
import { embedHost } from "@tackroom/host"
import { type HostConfig, limits, methodNames } from "@tackroom/protocol/run"
import { type ConnectOptions, connectHost, type Host, launchHost, makeInProcessTransport } from "@tackroom/sdk/client"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { clientCases } from "../../packages/sdk/test/client/clientSuite.ts"
import { folder, follow, program, temporary } from "./real-input/Hosts.ts"

interface Asked {
  readonly messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>
}

const textOf = (content: unknown): string => (typeof content === "string" ? content : JSON.stringify(content ?? ""))

const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) })
const planned = (step: number) =>
  call("plan__update", { items: [{ content: `step ${step}`, status: "in_progress" as const }] })

/** What the agents of the cases are told to be, and what the model then says. `done` counts the responses of the turn. */
const models: { readonly [agent: string]: (message: string, done: number) => object | Promise<object> } = {
  talker: (message) => ({ content: `You said: ${message}` }),
  many: (message, done) =>
    done * 150 < Number(message)
      ? { toolCalls: Array.from({ length: 50 }, (_, index) => planned(done * 50 + index)) }
      : { content: "done" },
  asker: (_, done) => (done === 0 ? { toolCalls: [call("shell__run", { command: "true" })] } : { content: "done" }),
  questioner: (_, done) =>
    done === 0 ? { toolCalls: [call("ask_user", { question: "which?" })] } : { content: "done" },
  sleeper: () => new Promise(() => undefined)
}

const respond = ({ messages }: Asked): never => {
  const agent = textOf(messages.find(({ role }) => role === "system")?.content)
  const last = messages.findLastIndex(({ role }) => role === "user")
  const done = messages.slice(last).filter(({ role }) => role === "assistant").length
  const answer = models[agent]?.(textOf(messages[last]?.content), done)
  return (answer ?? { content: `nobody is called ${agent}` }) as never
}

const agents: NonNullable<HostConfig["agents"]> = Object.keys(models).map((id) => ({
  id,
  instructions: id,
  planning: true,
  model: { connection: "wire", model: "any" },
  tools: id === "asker" ? ["shell.run"] : []
}))

let mock: LLMock

beforeAll(async () => {
  mock = new LLMock({ port: 0 })
  mock.on({ predicate: () => true }, respond)
  await mock.start()
})

afterAll(async () => {
  await mock.stop()
})

const configuration = (directory: string): HostConfig => ({
  stateDir: join(directory, "state"),
  sandbox: "none",
  providers: [{ name: "wire", api: "chat-completions", baseUrl: `${mock.url}/v1` }],
  agents
})

type Connect = (config: HostConfig, options?: ConnectOptions) => Promise<Host>

const overStdio: Connect = (config, options = {}) =>
  launchHost({ ...options, command: process.execPath, args: [program], config })

const embedded = (config: HostConfig) =>
  embedHost(config, {
    version: "0.0.0",
    environment: process.env,
    runner: { command: process.execPath, args: [program, "tool-runner"] }
  })

const inProcess: Connect = (config, options = {}) =>
  connectHost(async () => makeInProcessTransport(await embedded(config)), options)

const ways = { "on stdio": overStdio, "in this process": inProcess }

const within = async (use: (directory: string) => Promise<void>): Promise<void> => {
  const directory = temporary("client")
  try {
    await use(directory.path)
  } finally {
    directory.remove()
  }
}

for (const [way, connect] of Object.entries(ways)) {
  describe(`the client over a host ${way}`, () => {
    for (const one of clientCases) {
      it(`${one.name} [RUN-590]`, () =>
        within((directory) =>
          one.run({
            workspace: folder(directory, "work"),
            connect: (options) => connect(configuration(directory), options)
          })
        ))
    }
  })
}

/** A request with nothing in it, by name. */
const bare = (host: Host, method: (typeof methodNames)[number]): Promise<unknown> =>
  host.request(method, {} as never).then(
    () => "answered",
    (error: unknown) => {
      const { _tag, path, feature, limit } = error as { [key in "_tag" | "path" | "feature" | "limit"]?: string }
      return { _tag, path, feature, limit }
    }
  )

describe("the host in this process", () => {
  it("has the methods, errors, bounds and capabilities of the pipe [RUN-590]", () =>
    within(async (directory) => {
      const told = []
      for (const [way, connect] of Object.entries(ways)) {
        const host = await connect(configuration(folder(directory, way)))
        const workspace = folder(directory, "work")
        const session = await host.session({ agent: "talker", workspace })
        const answers: { [method: string]: unknown } = {}
        for (const method of methodNames) answers[method] = await bare(host, method)
        for (const [name, size] of [
          ["longest text", limits.textBytes],
          ["longer text", limits.textBytes + 1]
        ] as const) {
          answers[name] = await session.run("x".repeat(size)).result.then(
            ({ status }) => status,
            (error: unknown) => [(error as { _tag?: string })._tag, (error as { path?: string }).path]
          )
        }
        const { capabilities, limits: stated, protocolVersion, eventContract, sandbox } = host.info
        told.push({ answers, capabilities, stated, protocolVersion, eventContract, sandbox })
        await host.close()
      }
      assert.deepStrictEqual(told[0], told[1])
      assert.strictEqual(told[0]?.answers["longest text"], "completed")
    }))

  it("closing it ends its children, leaves its turns to the next start, and touches nothing else [RUN-592] [RUN-524]", () =>
    within(async (directory) => {
      const config = configuration(directory)
      const workspace = folder(directory, "work")
      const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const
      const listeners = () => signals.map((signal) => process.listenerCount(signal))
      const before = listeners()
      const host = await inProcess(config)
      const asker = await host.session({ agent: "asker", workspace })
      await follow(asker.run("run the tool", { onApproval: () => "once" }))
      const sleeper = await host.session({ agent: "sleeper", workspace })
      const run = sleeper.run("sleep")
      await run.started
      assert.deepStrictEqual(listeners(), before)
      await host.close()
      assert.deepStrictEqual(listeners(), before)
      const children = execFileSync("ps", ["-o", "args=", "--ppid", String(process.pid)], { encoding: "utf8" })
      assert.notInclude(children, "tool-runner")

      const again = await overStdio(config)
      const attached = await again.attach(sleeper.id)
      assert.strictEqual(attached.attached?.state.state, "running")
      assert.strictEqual(attached.attached?.runs[0]?.submissionId, run.submissionId)
      assert.deepStrictEqual((await attached.cancel()).cancelled, [sleeper.id])
      const owner = JSON.parse(readFileSync(join(config.stateDir, "host.json"), "utf8")) as { pid: number }
      assert.strictEqual(owner.pid, again.pid)
      await again.close()
    }))

  it("holds its state directory alone, like the program [RUN-088]", () =>
    within(async (directory) => {
      const config = configuration(directory)
      const host = await inProcess(config)
      const second = await overStdio(config).then(
        () => assert.fail("it started"),
        (error: unknown) => error
      )
      assert.deepInclude(second, { _tag: "StartupFailed", reason: "state_dir_locked" })
      await host.close()
      await (await overStdio(config)).close()
    }))

  it("says in a promise why it cannot start [RUN-081]", () =>
    within(async (directory) => {
      const file = join(directory, "state", "x")
      const refused = await inProcess({ ...configuration(directory), stateDir: join(program, "no folder") }).then(
        () => assert.fail(`it started in ${file}`),
        (error: unknown) => error
      )
      assert.strictEqual((refused as { _tag?: string })._tag, "StartupFailed")
    }))
})
