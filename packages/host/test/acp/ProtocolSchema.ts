/** The protocol's published JSON Schema, against which every frame that the program writes is checked (ACP-012). */
import { type Schema as EngineSchema, Validator } from "@cfworker/json-schema"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import type { Frame } from "./AcpProgram.ts"

interface Published {
  readonly $defs: { readonly [name: string]: EngineSchema }
}

const published = JSON.parse(
  fs.readFileSync(fileURLToPath(import.meta.resolve("@agentclientprotocol/sdk/schema/v1/schema.json")), "utf8")
) as Published

const validators = new Map<string, Validator>()

const validator = (name: string): Validator => {
  const known = validators.get(name)
  if (known !== undefined) return known
  const made = new Validator({ $defs: published.$defs, $ref: `#/$defs/${name}` } as EngineSchema, "2020-12", false)
  validators.set(name, made)
  return made
}

const responses: Readonly<Record<string, string>> = {
  initialize: "InitializeResponse",
  authenticate: "AuthenticateResponse",
  "session/new": "NewSessionResponse",
  "session/load": "LoadSessionResponse",
  "session/resume": "ResumeSessionResponse",
  "session/list": "ListSessionsResponse",
  "session/close": "CloseSessionResponse",
  "session/delete": "DeleteSessionResponse",
  "session/set_mode": "SetSessionModeResponse",
  "session/set_config_option": "SetSessionConfigOptionResponse",
  "session/prompt": "PromptResponse"
}

const requests: Readonly<Record<string, string>> = {
  "session/update": "SessionNotification",
  "session/request_permission": "RequestPermissionRequest",
  "elicitation/create": "CreateElicitationRequest",
  "fs/read_text_file": "ReadTextFileRequest",
  "fs/write_text_file": "WriteTextFileRequest",
  "terminal/create": "CreateTerminalRequest",
  "terminal/output": "TerminalOutputRequest",
  "terminal/wait_for_exit": "WaitForTerminalExitRequest",
  "terminal/kill": "KillTerminalRequest",
  "terminal/release": "ReleaseTerminalRequest",
  "$/cancel_request": "CancelRequestNotification"
}

/** What is wrong with a frame; `methods` says which method the client sent under which id. */
export const schemaProblems = (
  frame: Frame,
  methods: ReadonlyMap<string | number | null, string>
): ReadonlyArray<string> => {
  const check = (name: string | undefined, value: unknown): ReadonlyArray<string> => {
    if (name === undefined) return [`there is no schema for ${JSON.stringify(frame).slice(0, 200)}`]
    const { errors, valid } = validator(name).validate(value)
    return valid ? [] : errors.map(({ error, instanceLocation }) => `${name} ${instanceLocation}: ${error}`)
  }
  if (frame.method !== undefined) return check(requests[frame.method], frame.params)
  if (frame.error !== undefined) {
    return Number.isInteger(frame.error.code) && typeof frame.error.message === "string" ? [] : ["a malformed error"]
  }
  return check(responses[methods.get(frame.id ?? null) ?? ""], frame.result)
}
