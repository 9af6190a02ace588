/** The little project of the demonstration: one function with a fault and a test that finds it. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** Each test run leaves a line here, so that one that ran twice would show. */
export const testLog = "test-runs.log"
export const faultyFile = "src/slug.js"

const files: Readonly<Record<string, string>> = {
  "README.md": `# Slugs\n\nTurns titles into names for addresses: "Hello World" becomes "hello-world".\n`,
  "package.json": `{ "name": "slugs", "type": "module", "private": true }\n`,
  [faultyFile]: `export const slug = (title) => title.toLowerCase().replace(" ", "-")\n`,
  "test/slug.test.js": `import assert from "node:assert"
import { appendFileSync } from "node:fs"
import { test } from "node:test"
import { slug } from "../src/slug.js"

appendFileSync(new URL("../${testLog}", import.meta.url), "run\\n")

test("every space becomes a dash", () => assert.equal(slug("Hello Big World"), "hello-big-world"))
`
}

export const fixed = { old: `replace(" ", "-")`, new: `replaceAll(" ", "-")` }

export const writeSample = (directory: string): void => {
  for (const [name, text] of Object.entries(files)) {
    const file = join(directory, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}
