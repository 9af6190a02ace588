/**
 * The tools which every host has: native ones (files.*, shell.run, web.*) and internal ones that agents get by their flags
 * (plan.update, ask_user). Names, words for the model, and closed JSON Schema 2020-12 inputs (run-protocol.md, 20 and 23).
 *
 * Data only: who runs them is `ToolRunner.ts` (files.*, shell.run) and the native harness (internal). Changing a schema or a
 * category changes the tool's binding, and with it ends the grants given for it (AGT-121).
 */
import type { Category } from "@tackroom/protocol/events"
import type { ByteBounds, JsonSchema } from "./Arguments.ts"
import { limits } from "./Limits.ts"

export interface Declaration {
  readonly qualifiedName: string
  readonly source: "native" | "internal"
  /** Internal tools have none and never ask (AGT-034). */
  readonly category: Category | undefined
  readonly description: string
  readonly schema: JsonSchema
  readonly bytes?: ByteBounds
}

const object = (properties: JsonSchema, required: ReadonlyArray<string>): JsonSchema => ({
  type: "object",
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false
})

const string = (description: string, minLength: number, maxLength: number): JsonSchema => ({
  type: "string",
  minLength,
  maxLength,
  description
})

const integer = (description: string, minimum: number, maximum: number, standard: number): JsonSchema => ({
  type: "integer",
  minimum,
  maximum,
  default: standard,
  description
})

const flag = (description: string, standard: boolean): JsonSchema => ({
  type: "boolean",
  default: standard,
  description
})

const path = (what: string): JsonSchema =>
  string(`${what}, relative to the workspace or absolute inside it`, 1, limits.pathChars)

const folder = { ...path("Folder"), default: "." }
const glob = string(
  "Only names that match: * and ? within a name, ** over folders, [abc], {a,b}. With a slash it is matched against the path below the folder, else against the name",
  1,
  limits.globChars
)
const digest: JsonSchema = {
  type: "string",
  pattern: "^[0-9a-fA-F]{64}$",
  description: "Fail without a change unless the file has this SHA-256 (hex)"
}

const shell = (secondsMax: number): Declaration => ({
  qualifiedName: "shell.run",
  source: "native",
  category: "exec",
  description:
    "Runs a command with sh -c and returns its exit code and output. Every call is a new shell without a terminal; processes it leaves behind are ended with it.",
  schema: object(
    {
      command: string("The command line", 1, limits.commandBytes),
      cwd: { ...path("Folder in which it runs"), default: "." },
      timeout_seconds: integer(
        "The command is ended after this time",
        1,
        secondsMax,
        Math.min(limits.shellSecondsDefault, secondsMax)
      ),
      env: {
        type: "object",
        maxProperties: limits.envEntries,
        propertyNames: { pattern: `^[A-Za-z_][A-Za-z0-9_]{0,${limits.envNameChars - 1}}$` },
        additionalProperties: { type: "string", maxLength: limits.envValueBytes },
        description: "Further environment variables"
      },
      stdin: { ...string("Text for its standard input, which is closed afterwards", 0, limits.stdinBytes) }
    },
    ["command"]
  ),
  bytes: { command: limits.commandBytes, stdin: limits.stdinBytes, cwd: limits.pathChars * 4 }
})

/** All of them. `shellSecondsMax` may be lowered by the host's configuration. */
export const declarations = (shellSecondsMax: number = limits.shellSecondsMax): ReadonlyArray<Declaration> => [
  {
    qualifiedName: "files.read",
    source: "native",
    category: "read",
    description: "Reads lines of a text file, or the first 256 KiB of any file as base64.",
    schema: object(
      {
        path: path("File"),
        start_line: { type: "integer", minimum: 1, default: 1, description: "First line, counted from 1" },
        max_lines: integer("Most lines to return", 1, limits.readLines, limits.readLinesDefault),
        encoding: { type: "string", enum: ["utf8", "base64"], default: "utf8", description: "base64 for binary files" }
      },
      ["path"]
    )
  },
  {
    qualifiedName: "files.list",
    source: "native",
    category: "read",
    description: "Lists a folder, upper levels first. Symlinks are listed and not followed.",
    schema: object(
      {
        path: folder,
        depth: integer("Levels to descend; 1 is the folder alone", 1, limits.listDepth, 1),
        glob,
        hidden: flag("Also names that begin with a dot", false),
        limit: integer("Most entries to return", 1, limits.listEntries, limits.listEntriesDefault)
      },
      []
    )
  },
  {
    qualifiedName: "files.search",
    source: "native",
    category: "read",
    description:
      "Finds lines that hold a text or match a regular expression (RE2 syntax: no look-around, no back-reference), one match per line. Hidden files are searched, .git folders and binary files are not.",
    schema: object(
      {
        pattern: string("Text, or a regular expression with regex", 1, limits.patternChars),
        path: { ...path("File or folder"), default: "." },
        regex: flag("The pattern is a regular expression", false),
        case_sensitive: flag("Upper and lower case differ", true),
        glob,
        context_lines: integer("Lines to show before and after each match", 0, limits.contextLines, 0),
        limit: integer("Most matches to return", 1, limits.searchMatches, limits.searchMatchesDefault)
      },
      ["pattern"]
    )
  },
  {
    qualifiedName: "files.write",
    source: "native",
    category: "write_local",
    description: "Writes a whole file, new or in place of an old one, in one step.",
    schema: object(
      {
        path: path("File"),
        content: string("The whole new content", 0, limits.writeBytes),
        create_dirs: flag("Make missing folders", true),
        expect_sha256: digest
      },
      ["path", "content"]
    ),
    bytes: { content: limits.writeBytes }
  },
  {
    qualifiedName: "files.edit",
    source: "native",
    category: "write_local",
    description:
      "Replaces exact pieces of a file, one after another, all or none. Each old text must occur exactly once unless all is set.",
    schema: object(
      {
        path: path("File"),
        edits: {
          type: "array",
          minItems: 1,
          maxItems: limits.edits,
          items: object(
            {
              old: string("Text to replace, exactly as in the file", 1, limits.editFileBytes),
              new: string("Text in its place", 0, limits.editFileBytes),
              all: flag("Replace every occurrence", false)
            },
            ["old", "new"]
          )
        },
        expect_sha256: digest
      },
      ["path", "edits"]
    )
  },
  shell(shellSecondsMax),
  {
    qualifiedName: "web.fetch",
    source: "native",
    category: "network",
    description: "Fetches a public http or https address with GET.",
    schema: object(
      {
        url: string("Address, http or https", 1, 2_048),
        format: { type: "string", enum: ["text", "raw"], default: "text", description: "text takes HTML apart" },
        max_bytes: integer("Most bytes to read", 1, 5 * 1024 * 1024, 1024 * 1024)
      },
      ["url"]
    )
  },
  {
    qualifiedName: "web.search",
    source: "native",
    category: "network",
    description: "Searches the web.",
    schema: object(
      { query: string("What to search for", 1, 400), max_results: integer("Most results to return", 1, 10, 5) },
      ["query"]
    )
  },
  {
    qualifiedName: "plan.update",
    source: "internal",
    category: undefined,
    description: "Replaces the plan of this work with the given items. Keep it current while you work.",
    schema: object(
      {
        items: {
          type: "array",
          maxItems: 64,
          items: object(
            {
              id: string("Id of an item of the plan so far", 1, 200),
              content: string("What is to be done", 1, 500),
              status: { type: "string", enum: ["pending", "in_progress", "completed", "cancelled"] }
            },
            ["content", "status"]
          )
        }
      },
      ["items"]
    )
  },
  {
    qualifiedName: "ask_user",
    source: "internal",
    category: undefined,
    description: "Asks the person a question and waits for the answer.",
    schema: object(
      {
        question: string("The question", 1, 4_000),
        options: {
          type: "array",
          maxItems: 8,
          items: { type: "string", minLength: 1, maxLength: 200 },
          description: "Answers to choose from"
        },
        allow_text: flag("The answer may be free text", true)
      },
      ["question"]
    )
  }
]
