/**
 * Tools of the application: a closure as a tool of an agent (run-protocol section 11). The client registers descriptors,
 * runs the closures on the reader path without ever blocking it, and sends results, errors and progress back.
 *
 * Needs the capability `application_callbacks`; a host without it answers `unsupported` when such a tool is registered.
 */
import { type ApplicationEvent, limits, type ToolDescriptor } from "@tackroom/protocol/run"
import { headBytes, utf8Length } from "@tackroom/protocol/text"
import { Option, Schema } from "effect"
import type { HostClient } from "./HostClient.ts"

/** What a tool may know of its call, and use during it. */
export interface ToolContext {
  readonly sessionId: string
  readonly turnId: string
  readonly callId: string
  readonly workspace: string
  /** Aborted when the host cancels the call or is gone. */
  readonly signal: AbortSignal
  /** Tells that the call goes on: at most 2,000 characters, and data of at most 16 KiB encoded. */
  readonly progress: (message: string, data?: Schema.Json) => void
}

/** Input of {@link tool}. */
export interface ToolOptions<A> {
  /** `provider.tool`; a name without a dot gets the provider `app`. */
  readonly name: string
  readonly description: string
  /** The input: an object schema. Its JSON Schema is what the model sees. */
  readonly input: Schema.Codec<A, unknown>
  /** Change it with every change of meaning: agents and grants are bound to it. Default `1`. */
  readonly version?: string
  /** What a call can do to the world. Default `external`. */
  readonly category?: ToolDescriptor["category"]
  /** Does the call; what it returns must be JSON. */
  readonly run: (input: A, context: ToolContext) => unknown
}

/** A tool of the application. */
export interface Tool {
  readonly qualifiedName: string
  readonly descriptor: ToolDescriptor
  /** Runs the call with the model's arguments. Rejects when they do not fit, and as `run` does. */
  readonly call: (args: unknown, context: ToolContext) => Promise<unknown>
}

class ArgumentsInvalid extends Error {
  readonly code = "invalid_arguments"
}

/** Makes a tool of a closure. */
export const tool = <A>(options: ToolOptions<A>): Tool => {
  const qualifiedName = options.name.includes(".") ? options.name : `app.${options.name}`
  const decode = Schema.decodeUnknownOption(options.input)
  const { schema, definitions } = Schema.toJsonSchemaDocument(options.input)
  // A JSON Schema is JSON.
  const inputSchema = {
    ...schema,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
  } as ToolDescriptor["inputSchema"]
  return {
    qualifiedName,
    descriptor: {
      qualifiedName,
      description: options.description,
      inputSchema,
      version: options.version ?? "1",
      ...(options.category === undefined ? {} : { category: options.category })
    },
    call: async (args, context) => {
      const input = decode(args)
      if (Option.isNone(input)) throw new ArgumentsInvalid("the arguments do not fit the tool's schema")
      return options.run(input.value, context)
    }
  }
}

/** The characters of an error's text, and of a progress message, that are sent. */
const textChars = 2_000
const progressDataBytes = 16_384

/** The text of an error without its stack (RT-356). */
export const sanitized = (error: unknown): { readonly message: string; readonly code?: string } => {
  const message = error instanceof Error ? error.message : "the tool failed"
  const text = message
    .split("\n")
    .filter((line) => !/^\s+at /.test(line))
    .join("\n")
  const code =
    typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
      ? error.code
      : undefined
  return { message: headBytes(text, textChars), ...(code === undefined ? {} : { code }) }
}

/** The closures of an application and the calls that are under way. Lives as long as the application's client. */
export class ToolBox {
  readonly owner: string
  private readonly tools = new Map<string, Tool>()
  private readonly calls = new Map<string, AbortController>()

  constructor(owner: string) {
    this.owner = owner
  }

  /** Remembers tools; returns the descriptors of those that are new or have changed. */
  add(tools: ReadonlyArray<Tool>): ReadonlyArray<ToolDescriptor> {
    const changed = tools.filter((one) => this.tools.get(one.qualifiedName) !== one)
    for (const one of changed) this.tools.set(one.qualifiedName, one)
    return changed.map((one) => one.descriptor)
  }

  /** Every descriptor, for a host that was started again (RUN-294). */
  get descriptors(): ReadonlyArray<ToolDescriptor> {
    return [...this.tools.values()].map((one) => one.descriptor)
  }

  /** Serves the events of a connection until it ends. Calls of an earlier connection are aborted. */
  serve(client: HostClient): void {
    client.onNotification((notification) => {
      if (notification.method !== "application/event") return
      this.event(client, notification.params as ApplicationEvent)
    })
    void client.closed.then(() => this.abandon())
  }

  private abandon(): void {
    for (const call of this.calls.values()) call.abort(new Error("the host is gone"))
    this.calls.clear()
  }

  private event(client: HostClient, event: ApplicationEvent): void {
    if (event.owner !== this.owner) return
    if (event.kind === "cancel") {
      this.calls.get(event.invocationId)?.abort(new Error("the call was cancelled"))
      return
    }
    const { invocationId } = event
    const abort = new AbortController()
    this.calls.set(invocationId, abort)
    // The closure starts in a turn of its own: reading goes on first (RT-350).
    void Promise.resolve()
      .then(() => this.run(client, event, abort.signal))
      .then(
        (output) => this.result(client, invocationId, { output }),
        (error: unknown) => this.result(client, invocationId, { error: sanitized(error) })
      )
      .finally(() => this.calls.delete(invocationId))
  }

  private run(
    client: HostClient,
    event: Extract<ApplicationEvent, { readonly kind: "call" }>,
    signal: AbortSignal
  ): Promise<unknown> {
    const one = this.tools.get(event.tool)
    if (one === undefined) return Promise.reject(new Error(`there is no tool ${event.tool}`))
    return one.call(event.arguments, {
      ...event.context,
      signal,
      progress: (message, data) => {
        if (signal.aborted) return
        const large = data !== undefined && utf8Length(JSON.stringify(data)) > progressDataBytes
        client.notify("application/progress", {
          owner: this.owner,
          invocationId: event.invocationId,
          message: headBytes(message, textChars),
          ...(data === undefined || large ? {} : { data })
        })
      }
    })
  }

  private result(
    client: HostClient,
    invocationId: string,
    outcome: { readonly output: unknown } | { readonly error: { readonly message: string; readonly code?: string } }
  ): void {
    const named = { owner: this.owner, invocationId }
    if ("error" in outcome) return client.notify("application/result", { ...named, error: outcome.error })
    const encoded = encode(outcome.output)
    if (encoded === undefined) {
      const error = { message: "the tool's result is no JSON", code: "result_invalid" }
      return client.notify("application/result", { ...named, error })
    }
    if (utf8Length(encoded) > limits.applicationResultBytes) {
      const error = {
        message: `the tool's result is larger than ${limits.applicationResultBytes} bytes`,
        code: "result_too_large"
      }
      return client.notify("application/result", { ...named, error })
    }
    client.notify("application/result", { ...named, output: JSON.parse(encoded) as Schema.Json })
  }
}

/** The JSON of a result; nothing counts as null. */
const encode = (output: unknown): string | undefined => {
  try {
    return output === undefined ? "null" : JSON.stringify(output)
  } catch {
    return undefined
  }
}
