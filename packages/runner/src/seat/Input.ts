/** Joins the terminal to the conversation: bytes into events, the draft into the pane, the clock into an unended paste. */
import { Effect, FiberHandle, type Scope } from "effect"
import type { InputEvent } from "../terminal/Block.ts"
import { type DraftPart, makeInputMachine, unendedPasteMs } from "../terminal/InputMachine.ts"
import { makeLineInput } from "../terminal/LineInput.ts"
import type { InputListener, SeatTerminal } from "../terminal/Terminal.ts"

const decoder = new TextDecoder("utf-8")

const draftText = (parts: ReadonlyArray<DraftPart>): string =>
  parts.map((part) => (part._tag === "Typed" ? decoder.decode(part.bytes) : `(pasted ${part.lines} lines)`)).join("")

/** Listens to the terminal for as long as the scope lives. */
export const readInput = (options: {
  readonly terminal: SeatTerminal
  readonly event: (event: InputEvent) => void
  readonly draft: (text: string) => void
  /** The end of input. */
  readonly end: () => void
}): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const runSilence = yield* FiberHandle.makeRuntime<never>()
    const { draft, end, event, terminal } = options

    const ofTerminal = (): InputListener => {
      const machine = makeInputMachine()
      const tell = (events: ReadonlyArray<InputEvent>): void => {
        draft(draftText(machine.draft()))
        for (const each of events) event(each)
      }
      const silence = Effect.andThen(
        Effect.sleep(unendedPasteMs),
        Effect.sync(() => tell(machine.silence()))
      )
      return {
        data: (bytes) => {
          tell(machine.push(bytes))
          void runSilence(machine.isPasting() ? silence : Effect.void)
        },
        end
      }
    }

    const ofLines = (): InputListener => {
      const lines = makeLineInput()
      return {
        data: (bytes) => lines.push(bytes).forEach(event),
        end: () => {
          lines.end().forEach(event)
          end()
        }
      }
    }

    terminal.listen(terminal.isTty ? ofTerminal() : ofLines())
  })
