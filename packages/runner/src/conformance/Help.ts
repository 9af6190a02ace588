/** The help of `tackroom-conformance`. Pure. */
import type { Family } from "./Family.ts"

const common: ReadonlyArray<string> = [
  "  --only ID,…         run these checks alone",
  "  --skip ID,…         leave these out; they are reported as excluded",
  "  --profile NAME      contract (default), or tackroom: every should counts as a must",
  "  --jobs N            so many checks at once (default 2); checks that only watch run beside them",
  "  --json FILE         write the report as JSON; - writes it to stdout, and nothing else",
  "  --report FILE       write the report for people to a file too",
  "  --keep              keep the folders of the cases",
  "  --patience N        wait N times as long for what must come, on a slow machine (1 to 20)",
  "  --time-scale F      shorten long watches to F of their length, for a program that was told the same; the report says so",
  "  --help, --version"
]

const exits: ReadonlyArray<string> = [
  "Exit codes: 0 every must passed, or was not declared or excluded; 1 a must failed; 2 a must was skipped for another",
  "reason; 64 the command line is not understood, or the command is no program; 70 the kit itself failed. A should never",
  "changes the exit code. A program that is not heard in any case is given up after a few."
]

export const helpText = (family: Family | undefined, families: ReadonlyArray<Family>): string => {
  if (family === undefined) {
    return [
      "Black-box checks of Tackroom's wires: any program, in any language, judged by what it does.",
      "",
      "tackroom-conformance WIRE [options] -- COMMAND [ARGS…]",
      "tackroom-conformance self-test WIRE [--others N|all] [--seed N] [--jobs N] [--time-scale F]",
      "",
      "Wires:",
      ...families.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`),
      "",
      "Options of all checks:",
      ...common,
      "",
      ...exits,
      "",
      "The self-test runs a reference program, which must pass, and a broken twin of it for every promise, which must fail that",
      "promise and nothing that does not hang on it.",
      ""
    ].join("\n")
  }
  return [
    `tackroom-conformance ${family.name} [options] -- COMMAND [ARGS…]`,
    "",
    `Checks ${family.summary}.`,
    ...family.help,
    "",
    "Options:",
    ...Object.entries(family.flags).map(([flag, help]) => `  --${flag} ${help}`),
    ...common,
    "",
    ...exits,
    ""
  ].join("\n")
}
