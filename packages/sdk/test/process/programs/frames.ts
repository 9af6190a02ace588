/** Reserves stdout, then writes to it in every way a careless library would, among its frames. */
/* oxlint-disable no-console -- the strays are what is tested */
import { Console, Effect } from "effect"
import { reserveStdout } from "../../../src/process/StdoutGuard.ts"

const output = reserveStdout()
const encoder = new TextEncoder()

console.log("stray log")
console.info("stray info")
console.table([{ stray: "table" }])
process.stdout.write("stray write\n")
process.stdout.write(encoder.encode("stray bytes\n"), () => undefined)

const frame = (value: unknown): number => output.write(encoder.encode(`${JSON.stringify(value)}\n`))
const bulk = Number(process.argv[2] ?? "0")

const program = Effect.gen(function* () {
  yield* Console.log("stray console service")
  yield* Effect.log("stray default logger")
  frame({ frame: 1 })
  process.stdout.end("stray end\n")
  if (bulk > 0) output.write(new Uint8Array(bulk).fill(0x61))
  const pending = output.pending()
  frame({ frame: 2 })
  yield* output.below(0)
  process.stderr.write(`pending ${pending} then ${output.pending()} strays ${JSON.stringify(output.strays())}\n`)
})

Effect.runFork(
  Effect.catchTag(program, "OutputClosed", (error) => Effect.sync(() => process.exit(error.code === "EPIPE" ? 9 : 10)))
)
