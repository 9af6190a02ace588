import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { InputEvent } from "../../src/terminal/Block.ts"
import { makeInputMachine } from "../../src/terminal/InputMachine.ts"
import { makeLineInput } from "../../src/terminal/LineInput.ts"

const latin = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0))
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const ESC = "\u001b"
const open = `${ESC}[200~`
const close = `${ESC}[201~`
const prompt = (text: string, replaced = 0): InputEvent => ({ _tag: "Prompt", text, replaced })
const cancel: InputEvent = { _tag: "Cancel" }

const events = (...reads: ReadonlyArray<string | Uint8Array>): ReadonlyArray<InputEvent> => {
  const machine = makeInputMachine()
  return reads.flatMap((read) => machine.push(typeof read === "string" ? utf8(read) : read))
}

/** What is on the draft, as bytes are typed and pasted. */
const draftOf = (...reads: ReadonlyArray<string>): ReadonlyArray<string> => {
  const machine = makeInputMachine()
  for (const read of reads) machine.push(utf8(read))
  return machine
    .draft()
    .map((part) => (part._tag === "Typed" ? new TextDecoder().decode(part.bytes) : `${part.lines} pasted`))
}

describe("typed input", () => {
  it("Enter submits what was typed, and the next block starts empty [SEAT-I1]", () => {
    assert.deepStrictEqual(events("one\rtwo\r"), [prompt("one"), prompt("two")])
  })

  it("Ctrl-C cancels and the block stays [SEAT-I2]", () => {
    assert.deepStrictEqual(events("half\u0003 done\r"), [cancel, prompt("half done")])
  })

  it("tabs, line feeds and letters of any script join the block [SEAT-I3]", () => {
    assert.deepStrictEqual(events("a\tb\nc é 漢 🐴\r"), [prompt("a\tb\nc é 漢 🐴")])
  })

  it("a backspace takes a whole character, also one of four bytes, and nothing from an empty block [SEAT-I4]", () => {
    assert.deepStrictEqual(events("\u007f\u0008ab\u007fé\u0008漢🐴\u007f\u007fc\r"), [prompt("ac")])
    // A byte that belongs to no character goes alone.
    assert.deepStrictEqual(events(latin("a\u00a9\u00a9\u007f\u007f\r")), [prompt("a")])
  })

  it("Ctrl-U empties the block [SEAT-I5]", () => {
    assert.deepStrictEqual(events("wrong\u0015right\r"), [prompt("right")])
  })

  it("control bytes without a meaning are ignored [SEAT-I7]", () => {
    assert.deepStrictEqual(events("a\u0000\u0001\u0004\u000b\u000c\u001a\u001fb\r"), [prompt("ab")])
  })

  it("a block that is empty or blank is nothing, also when it was pasted [SEAT-033]", () => {
    assert.deepStrictEqual(events(`\r  \t\r${open} \n ${close}\r\u2028\r`), [])
  })

  it("only the six bytes of the abort word are a control, typed or pasted [SEAT-032]", () => {
    assert.deepStrictEqual(events(`/abort\r${open}/abort${close}\r`), [cancel, cancel])
    const words = [" /abort", "/abort ", "/abort\n", "/ABORT", "a\n/abort\nb"]
    for (const word of words) assert.deepStrictEqual(events(`${open}${word}${close}\r`), [prompt(word)])
  })

  it("separators, NUL in a paste and combining marks pass; other bytes are replaced and counted [SEAT-034]", () => {
    const odd = "a\u2028b\u2029c\u0000e\u0301\ufffd"
    assert.deepStrictEqual(events(`${open}${odd}${close}\r`), [prompt(odd)])
    assert.deepStrictEqual(events(latin("\u00ff\u00feok\u00c3\r")), [prompt("\ufffd\ufffdok\ufffd", 3)])
  })
})

describe("sequences", () => {
  it("cursor keys, function keys and modifiers leave no trace [SEAT-I6, SEAT-I8, SEAT-I12]", () => {
    assert.deepStrictEqual(events(`a${ESC}[A${ESC}[1;5C${ESC}[?25h${ESC}[15~${ESC}[201~b\r`), [prompt("ab")])
  })

  it("an escape before text is dropped and the text stays, two escapes are one [SEAT-I8, SEAT-I9]", () => {
    assert.deepStrictEqual(events(`a${ESC}b${ESC}${ESC}[Bc${ESC}\r`), [prompt("abc")])
    assert.deepStrictEqual(events(`a${ESC}\u0003b\r`), [cancel, prompt("ab")])
  })

  it("keypad sequences are ignored, a control byte inside one is not [SEAT-I10]", () => {
    assert.deepStrictEqual(events(`a${ESC}OPb${ESC}O\u0003c${ESC}O\r`), [cancel, prompt("abc")])
  })

  it("a sequence ends at its 33rd parameter byte, and what follows is text [SEAT-I11, SEAT-I13]", () => {
    assert.deepStrictEqual(events(`${ESC}[${"1".repeat(32)}mx\r`), [prompt("x")])
    assert.deepStrictEqual(events(`${ESC}[${"1".repeat(33)}mx\r`), [prompt("1mx")])
  })

  it("a broken sequence is dropped and its last byte read as text [SEAT-I13]", () => {
    assert.deepStrictEqual(events(`a${ESC}[12\rb${ESC}[1é\r`), [prompt("a"), prompt("bé")])
  })

  it("a paste starts with exactly its mark [SEAT-I12]", () => {
    assert.deepStrictEqual(events(`${ESC}[0200~a\rb${ESC}[200;1~c\r`), [prompt("a"), prompt("bc")])
  })
})

describe("pastes", () => {
  it("everything up to an Enter outside of pastes is one block, with its lines [SEAT-031, SEAT-I16, SEAT-I17]", () => {
    assert.deepStrictEqual(events(`see ${open}line 1\n\n\tline 3 \n${close} please${open}!${close}\r`), [
      prompt("see line 1\n\n\tline 3 \n please!")
    ])
  })

  it("line ends become line feeds, inside a paste alone [SEAT-033]", () => {
    assert.deepStrictEqual(events(`${open}a\r\nb\rc\n\rd\r\r\ne\r${close}\nf\r`), [prompt("a\nb\nc\n\nd\n\ne\n\nf")])
  })

  it("Ctrl-C in a paste is text and cancels, other controls are text [SEAT-I15, SEAT-I16]", () => {
    assert.deepStrictEqual(events(`${open}a\u0003b\u0015\u007f\u0004${close}\r`), [
      cancel,
      prompt("a\u0003b\u0015\u007f\u0004")
    ])
  })

  it("what begins like the end mark and goes on otherwise is text [SEAT-I14, SEAT-I18]", () => {
    const odd = `${ESC}[20${ESC}${ESC}[201${ESC}[200~${ESC}[2011~\u0003`
    assert.deepStrictEqual(events(`${open}${odd}${close}\r`), [cancel, prompt(odd)])
  })

  it("a silent paste ends as a draft that can still be submitted [SEAT-I19]", () => {
    const machine = makeInputMachine()
    machine.push(utf8(`a${open}b${ESC}[20`))
    assert.isTrue(machine.isPasting())
    assert.deepStrictEqual(machine.silence(), [{ _tag: "UnendedPaste" }])
    assert.isFalse(machine.isPasting())
    assert.deepStrictEqual(machine.silence(), [])
    assert.deepStrictEqual(machine.push(utf8("c\r")), [prompt(`ab${ESC}[20c`)])
  })

  it("a block over the limit is dropped whole, one at the limit and the next one are not [SEAT-035]", () => {
    const limit = 1_048_576
    const full = "x".repeat(limit)
    const got = events(`${open}${full}x${close} more\r${full}\rnext\r`)
    assert.deepStrictEqual(
      got.map((event) => (event._tag === "Prompt" ? event.text.length : event)),
      [{ _tag: "TooLarge", bytes: limit + 6 }, limit, 4]
    )
  })

  it("a dropped block can be emptied, and then counts no more [SEAT-I5, SEAT-035]", () => {
    const machine = makeInputMachine(4)
    assert.deepStrictEqual(machine.push(utf8("toolong\u0008\u0015ok\r")), [prompt("ok")])
    assert.deepStrictEqual(machine.push(utf8("toolong\u0008\r")), [{ _tag: "TooLarge", bytes: 7 }])
  })
})

describe("the draft", () => {
  it("shows what is typed and of a paste its number of lines [SEAT-040]", () => {
    assert.deepStrictEqual(draftOf("see ", `${open}a\nb\r\nc${close}`, " and"), ["see ", "3 pasted", " and"])
    assert.deepStrictEqual(draftOf(`${open}a\n\n${close}\u007f\u007f`), ["1 pasted"])
    assert.deepStrictEqual(draftOf(`x${open}y${close}\u007f\u007f`), [])
    assert.deepStrictEqual(draftOf("gone\r"), [])
  })
})

/** Bytes that a machine of states can go wrong at, and few that it cannot. */
const Fragment = Schema.Literals([
  ESC,
  "\r",
  "\n",
  "\u0003",
  "[",
  "O",
  "200~",
  "201~",
  open,
  close,
  `${ESC}[20`,
  `${ESC}[201`,
  "\u007f",
  "\u0015",
  "/abort",
  "/abort\r",
  "é",
  "漢",
  "🐴",
  "a",
  " ",
  "1;5"
])
const Stream = Schema.Struct({
  fragments: Schema.Array(Fragment),
  raw: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))),
  cuts: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 200 })))
})

const corpus: ReadonlyArray<string> = [
  `a${ESC}[200~b\r\nc${ESC}[201~d\r`,
  `${open}x\u0003${ESC}[20${ESC}[201~\r/abort\r`,
  `é${ESC}O\u007f🐴${ESC}[1;5C\u0015漢\r`,
  `${open}one\r${close}${open}\ntwo${close}\u0003\r`
]

describe("reads", () => {
  it("every cut of a stream into two or three reads gives the same events [SEAT-030]", () => {
    for (const text of corpus) {
      const bytes = utf8(text)
      const whole = events(bytes)
      for (let i = 0; i <= bytes.length; i++) {
        for (let j = i; j <= bytes.length; j++) {
          const got = events(bytes.subarray(0, i), bytes.subarray(i, j), bytes.subarray(j))
          assert.deepStrictEqual(got, whole, `${JSON.stringify(text)} cut at ${i} and ${j}`)
        }
      }
    }
  })

  it.prop(
    "no cut of any stream changes an event or the draft [SEAT-030]",
    [Stream],
    ([{ cuts, fragments, raw }]) => {
      const text = utf8(fragments.join(""))
      const bytes = Uint8Array.from([...text, ...raw, ...text])
      const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].toSorted((a, b) => a - b)
      const whole = makeInputMachine()
      const pieces = makeInputMachine()
      const once = whole.push(bytes)
      const cut = [0, ...at].flatMap((from, index) => pieces.push(bytes.subarray(from, at[index] ?? bytes.length)))
      assert.deepStrictEqual(cut, once)
      assert.deepStrictEqual(pieces.draft(), whole.draft())
      const single = makeInputMachine()
      assert.deepStrictEqual(
        [...bytes].flatMap((byte) => single.push(Uint8Array.of(byte))),
        once
      )
    },
    { arbitrary: { runs: 2_000 } }
  )
})

describe("input without a terminal", () => {
  it("each line is a block, without its line end, and the last one needs none [SEAT-038]", () => {
    const lines = makeLineInput(8)
    assert.deepStrictEqual(lines.push(utf8("one\r\nt")), [prompt("one")])
    assert.deepStrictEqual(lines.push(utf8("wo\n\n/abort\n123456789\n\rx\u0003")), [
      prompt("two"),
      cancel,
      { _tag: "TooLarge", bytes: 9 }
    ])
    assert.deepStrictEqual(lines.end(), [prompt("\rx\u0003")])
    assert.deepStrictEqual(lines.end(), [])
  })
})
