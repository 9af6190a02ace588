/** What a person chooses in a session: its mode and its options (ACP-081 to ACP-085). What is in force the runtime keeps. */
import type { SetSessionConfigOptionRequest } from "@agentclientprotocol/sdk"
import { Effect } from "effect"
import type { Host } from "../../Host.ts"
import type { OpenSessions } from "./OpenSessions.ts"
import { configOptions, isEffort, isMode, isModel, modesOf, valuesOf } from "./Options.ts"
import { invalidParams } from "./Refusals.ts"
import { offerOf } from "./SettingUp.ts"

/** A model as the runtime names it: with its provider in front, or the harness's own. */
const modelOf = (value: string, harness: string) => {
  const slash = value.indexOf("/")
  return slash > 0
    ? { providerID: value.slice(0, slash), modelID: value.slice(slash + 1) }
    : { providerID: harness, modelID: value }
}

export const makeChoosing = (host: Host, open: OpenSessions) => {
  const offered = Effect.fnUntraced(function* (sessionId: string) {
    const { can } = yield* open.active(sessionId)
    return { can, offer: yield* offerOf(host, yield* host.sessions.find(sessionId), can) }
  })

  const setMode = Effect.fnUntraced(function* (sessionId: string, modeId: string) {
    const { can, offer } = yield* offered(sessionId)
    const modes = can.permissionModes ? modesOf(offer.options, offer.config) : undefined
    if (modes?.availableModes.some(({ id }) => id === modeId) !== true) {
      return yield* Effect.fail(invalidParams("unknown_mode", "The session has no mode of that id"))
    }
    yield* host.offers.set(sessionId, { permissionMode: modeId })
  })

  const setOption = Effect.fnUntraced(function* (params: SetSessionConfigOptionRequest) {
    const { configId, sessionId } = params
    const { offer } = yield* offered(sessionId)
    const option = offer.options.find(({ id }) => id === configId)
    if (option === undefined) {
      return yield* Effect.fail(invalidParams("unknown_option", "The session has no option of that id"))
    }
    const value = typeof params.value === "boolean" ? (params.value ? "on" : "off") : params.value
    if (!valuesOf(option).includes(value)) {
      return yield* Effect.fail(invalidParams("bad_value", "The option has no such value"))
    }
    if (isMode(option)) yield* host.offers.set(sessionId, { permissionMode: value })
    else if (isEffort(option)) yield* host.offers.set(sessionId, { variant: value })
    else if (isModel(option)) yield* host.offers.set(sessionId, { model: modelOf(value, offer.config.harness.id) })
    else return yield* Effect.fail(invalidParams("unsupported", "This option cannot be set here"))
    const after = yield* offered(sessionId)
    return { configOptions: configOptions(after.offer.options, after.offer.config, open.client) }
  })

  return { setMode, setOption }
}
