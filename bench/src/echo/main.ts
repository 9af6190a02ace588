/** A bare echo: parses each line and writes its object back. What a JSON-lines program between two pipes costs at least. */
let rest = ""

process.stdin.setEncoding("utf8").on("data", (chunk: string) => {
  const lines = (rest + chunk).split("\n")
  rest = lines.pop() ?? ""
  for (const line of lines) {
    const { id, params } = JSON.parse(line) as { readonly id: number; readonly params: unknown }
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result: params })}\n`)
  }
})
