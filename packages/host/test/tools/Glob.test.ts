import { assert, describe, it } from "@effect/vitest"
import { compileGlob } from "../../src/tools/Glob.ts"

const yes: ReadonlyArray<readonly [glob: string, path: string]> = [
  ["*.ts", "a.ts"],
  ["*.ts", "src/deep/a.ts"],
  ["src/*.ts", "src/a.ts"],
  ["**/*.ts", "a.ts"],
  ["**/*.ts", "x/y/a.ts"],
  ["src/**", "src/x/y"],
  ["src/**/test/*.ts", "src/test/a.ts"],
  ["*.{ts,tsx}", "a.tsx"],
  ["{a,b/c}/*.js", "b/c/x.js"],
  ["file?.txt", "file1.txt"],
  ["[!a]x", "bx"],
  ["[a-c]x", "bx"],
  ["[]]x", "]x"],
  ["a[b", "a[b"],
  ["a{b", "a{b"],
  ["\\*.ts", "*.ts"],
  ["./a.ts", "a.ts"],
  ["*", ".hidden"],
  ["(a|b)+$^.txt", "(a|b)+$^.txt"],
  ["?.txt", "😀.txt"]
]
const no: ReadonlyArray<readonly [glob: string, path: string]> = [
  ["*.ts", "a.tsx"],
  ["src/*.ts", "src/x/a.ts"],
  ["src/*.ts", "lib/src/a.ts"],
  ["file?.txt", "file.txt"],
  ["[!a]x", "ax"],
  ["\\*.ts", "a.ts"],
  ["a/[!b]c", "a//c"],
  ["(a|b).txt", "a.txt"]
]

describe("Glob", () => {
  it("matches names and paths as documented", () => {
    for (const [glob, path] of yes) assert.isTrue(compileGlob(glob)(path), `${glob} ${path}`)
    for (const [glob, path] of no) assert.isFalse(compileGlob(glob)(path), `${glob} ${path}`)
  })

  it("a pattern full of stars is decided in linear time", () => {
    const matches = compileGlob(`${"*a".repeat(400)}b`)
    const begun = performance.now()
    assert.isFalse(matches("a".repeat(4_000)))
    assert.isBelow(performance.now() - begun, 4_000)
  })
})
