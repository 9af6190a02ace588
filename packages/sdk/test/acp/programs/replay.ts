/**
 * `replay.ts RECORDING`: plays an agent's side of a recorded conversation. It says what the agent said once its client has
 * said what it said before, and ends with an error as soon as the client says anything else. The recordings are made of
 * real agents by `test/e2e/agents`.
 */
import { deepStrictEqual } from "node:assert"
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"

type Fields = Readonly<Record<string, unknown>>

interface Entry {
  readonly by: "client" | "agent"
  readonly frame: Fields
}

const [, ...entries] = readFileSync(process.argv[2] ?? "", "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Entry)

/** Places in the recording stand for those of this run. */
const here = (frame: Fields): Fields => JSON.parse(JSON.stringify(frame).replaceAll("{cwd}", process.cwd())) as Fields

/** Ids of the client's requests, as recorded and as they are now. */
const ids = new Map<unknown, unknown>()
const said = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

const compare = (recorded: Fields, now: Fields): void => {
  if (recorded["method"] === undefined) return deepStrictEqual(now, recorded)
  deepStrictEqual(now["method"], recorded["method"])
  // What a client says of itself may change without a change of the conversation.
  if (recorded["method"] !== "initialize") deepStrictEqual(now["params"], recorded["params"])
}

const play = async (): Promise<number> => {
  for (const { by, frame } of entries) {
    if (by === "agent") {
      const isAnswer = frame["method"] === undefined
      const line = here(isAnswer ? { ...frame, id: ids.get(frame["id"]) } : frame)
      process.stdout.write(`${JSON.stringify(line)}\n`)
      continue
    }
    const next = await said.next()
    if (next.done === true) return 0
    const now = JSON.parse(next.value) as Fields
    compare(here(frame), now)
    if (frame["method"] !== undefined) ids.set(frame["id"], now["id"])
  }
  const more = await said.next()
  if (more.done === true) return 0
  throw new Error(`the recording is over, and the client says ${more.value}`)
}

try {
  process.exitCode = await play()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
