/**
 * Opens or reopens the conversation, and says in the launch record what came of it.
 */
import { renameSync, writeFileSync } from "node:fs"
import { type Agent, type Answer, isRecord } from "./Agent.ts"
import type { Settings } from "./Settings.ts"

export type Opened =
  | { readonly _tag: "Ready"; readonly nativeRef: string; readonly code?: undefined }
  | { readonly _tag: "Closed"; readonly code: number; readonly why: string }

const notFound = -32_002

/** Writes the record whole, once. */
const writeRecord = (settings: Settings, content: { readonly nativeRef?: string; readonly error?: string }): void => {
  const { broken, env, harness } = settings
  const path = env["OPENRIG_LAUNCH_RESULT"]
  const attempt = env["OPENRIG_LAUNCH_ATTEMPT"]
  if (path === undefined || attempt === undefined) return
  const record = JSON.stringify({
    format: 1,
    attempt: broken("CHK-020") ? "another-attempt" : attempt,
    harness,
    ...content,
    producer: "reference-runner 1; ACP 1"
  })
  if (broken("CHK-024")) {
    writeFileSync(path, record.slice(0, 20))
    setTimeout(() => writeFileSync(path, record), 300)
    return
  }
  writeFileSync(`${path}.new`, record, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Reads the whole list: true when it names the conversation, undefined when it could not be read. */
const isListed = (
  settings: Settings,
  agent: Agent,
  wanted: string,
  done: (listed: boolean | undefined) => void
): void => {
  const seen = new Set<string>()
  const page = (cursor: string | undefined): void =>
    agent.request("session/list", cursor === undefined ? {} : { cursor }, ({ error, result }) => {
      if (error !== undefined || !isRecord(result) || !Array.isArray(result["sessions"])) return done(undefined)
      if (result["sessions"].some((one) => isRecord(one) && one["sessionId"] === wanted)) return done(true)
      const next = result["nextCursor"]
      if (typeof next !== "string" || (settings.broken("CHK-167") && next === "")) return done(false)
      if (seen.has(next)) return done(undefined)
      seen.add(next)
      page(next)
    })
  page(undefined)
}

export const open = (settings: Settings, agent: Agent, cwd: string, done: (opened: Opened) => void): void => {
  const { broken, env, scale } = settings
  const wanted = env["OPENRIG_RESUME_REF"]

  if (broken("CHK-023") && env["OPENRIG_LAUNCH_RESULT"] === undefined) {
    return done({ _tag: "Closed", code: 1, why: "no launch record to write" })
  }
  if (broken("CHK-021")) writeRecord(settings, { nativeRef: "started" })

  const timed = (method: string, params: Record<string, unknown>, answered: (answer: Answer) => void): void => {
    let open = true
    const once = (answer: Answer): void => {
      if (!open) return
      open = false
      clearTimeout(limit)
      answered(answer)
    }
    const limit = setTimeout(() => once({ error: { code: 0, message: "timeout" } }), 60_000 * scale)
    agent.request(method, params, once)
  }

  const ready = (nativeRef: string): void => {
    writeRecord(settings, { nativeRef })
    done({ _tag: "Ready", nativeRef })
  }

  const openNew = (): void =>
    timed("session/new", { cwd, mcpServers: [] }, ({ result }) => {
      const id = isRecord(result) ? result["sessionId"] : undefined
      if (typeof id === "string") return ready(id)
      if (broken("CHK-022")) return ready("conversation-1")
      done({ _tag: "Closed", code: 76, why: "the conversation was not opened" })
    })

  const unconfirmed = (why: string): void => {
    if (broken("CHK-162")) return openNew()
    writeRecord(settings, { error: "unconfirmed" })
    done({ _tag: "Closed", code: 4, why })
  }
  const missing = (): void => {
    if (broken("CHK-162")) return openNew()
    if (!broken("CHK-164")) writeRecord(settings, { error: "missing" })
    done({ _tag: "Closed", code: 3, why: "the agent does not know the conversation" })
  }

  const reopen = (sessionId: string, method: string, canList: boolean): void =>
    timed(method, { sessionId, cwd, mcpServers: [] }, ({ error, result }) => {
      if (error === undefined) {
        const other = isRecord(result) && typeof result["sessionId"] === "string" ? result["sessionId"] : sessionId
        if (other === sessionId || broken("CHK-168")) {
          return ready(broken("CHK-163") ? "conversation-fresh" : sessionId)
        }
        writeRecord(settings, { nativeRef: other })
        return done({ _tag: "Closed", code: 5, why: "another conversation was opened" })
      }
      if (broken("CHK-165") && /not found/iu.test(error.message)) return missing()
      if (error.code !== notFound) return unconfirmed(error.message)
      if (!canList || broken("CHK-166")) return missing()
      isListed(settings, agent, sessionId, (listed) => (listed === true ? unconfirmed("it is listed") : missing()))
    })

  timed("initialize", { protocolVersion: 1, clientCapabilities: {} }, ({ result }) => {
    if (!isRecord(result) || result["protocolVersion"] !== 1) {
      return done({ _tag: "Closed", code: 76, why: "the agent does not speak version 1" })
    }
    if (wanted === undefined) return openNew()
    const capabilities = isRecord(result["agentCapabilities"]) ? result["agentCapabilities"] : {}
    const sessions = isRecord(capabilities["sessionCapabilities"]) ? capabilities["sessionCapabilities"] : {}
    const canResume = isRecord(sessions["resume"])
    const canList = isRecord(sessions["list"])
    const canLoad = capabilities["loadSession"] === true
    if (broken("CHK-160") && canLoad) return reopen(wanted, "session/resume", canList)
    if (broken("CHK-161") && canResume) return reopen(wanted, "session/load", canList)
    if (canResume) return reopen(wanted, "session/resume", canList)
    if (canLoad) return reopen(wanted, "session/load", canList)
    unconfirmed("the agent can reopen nothing")
  })
}
