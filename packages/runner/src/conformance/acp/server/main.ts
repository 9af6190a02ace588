/**
 * The kit's MCP server: the smallest one that an agent can use. It tells the kit, on the socket of its first argument, what it
 * was started with; the connection lasts as long as it does. Its second argument says how it behaves. It is the process edge:
 * stdin, stdout, variables, exit.
 */
import { connect } from "node:net"
import { createInterface } from "node:readline"

const [socket = "", manner = "kind", ...args] = process.argv.slice(2)

const put = (message: object): void => void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)

const answers: Readonly<Record<string, (params: unknown) => object>> = {
  initialize: (params) => ({
    protocolVersion: Reflect.get(Object(params), "protocolVersion") ?? "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "conformance", version: "1" }
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [{ name: "tide", description: "Tells the tide.", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: "The tide is out." }] })
}

const kit = connect(socket, () => kit.write(`${JSON.stringify({ args, value: process.env["CONFORMANCE_VALUE"] })}\n`))
// Without the kit there is nobody to serve, whatever the agent left running.
kit.on("error", () => process.exit(1))
kit.on("close", () => process.exit(0))
kit.resume()

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params } = JSON.parse(line) as { id?: unknown; method?: string; params?: unknown }
    if (id === undefined || manner === "silent") return
    const answer = answers[method ?? ""]
    put({
      id,
      ...(answer === undefined ? { error: { code: -32_601, message: "Method not found" } } : { result: answer(params) })
    })
  })
  .on("close", () => {
    // One that overhears the end of its input has to be told to end.
    if (manner !== "stubborn") process.exit(0)
  })
