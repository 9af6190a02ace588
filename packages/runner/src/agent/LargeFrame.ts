/**
 * Reads a line of the agent. Of a large one only as much becomes values as a seat can use: a line may hold millions of them,
 * and while they are made nothing else happens here: no key is heard, no beat is posted, no answer of the rig is read.
 *
 * A permission request that had to be shortened is a request all the same, with its options and what identifies the call;
 * what was left out is named in it as in a submit (SEAT-161). Nothing is left out of one that would have gone whole. What
 * is left out is not checked to be JSON.
 */
import { methods } from "@agentclientprotocol/sdk"
import { parseJson } from "@tackroom/protocol/text"
import { Result } from "effect"
import { bodyBytes, identifying, markTruncated, spare } from "../permission/Truncation.ts"
import { headOfArray, type Member, membersOf, type Members } from "./JsonOutline.ts"

/** A text of so many units is parsed as it is. */
const wholeUnits = bodyBytes
/** An id is a text or a number; one that is more than a little besides is none. */
const idWeight = 1_024

const frameFields = ["jsonrpc", "id", "method", "params", "result", "error"]
const paramFields = ["sessionId", "toolCall", "options", "update", "requestId"]
const updateFields = ["sessionUpdate", "toolCallId", "title", "kind", "status", "content", "entries"]
const resultFields = ["protocolVersion", "sessionId", "stopReason", "code", "message"]
/** What is read of updates, results and errors before anything else. */
const contentFields = [...updateFields, ...resultFields]

const valueText = (text: string, member: Member): string => text.slice(member.valueStart, member.end)

/** Throws for what is no JSON. */
const nameOf = (text: string, member: Member): string =>
  String(JSON.parse(text.slice(member.start, member.valueStart).trimEnd().slice(0, -1)))

const objectOf = (members: ReadonlyArray<string>): string => `{${members.join(",")}}`

interface Shortened {
  readonly text: string
  readonly leftOut: ReadonlyArray<Member>
}

/** Takes members as long as there is room for them: `first`, then those that nobody named, then `last`. */
const takeMembers = (
  text: string,
  members: Members,
  first: ReadonlyArray<string>,
  last: ReadonlyArray<string> = []
): Shortened => {
  const named = new Set([...first, ...last])
  const rest = [...members.kept.keys()].filter((name) => !named.has(name))
  const taken = new Set<Member>()
  let room = bodyBytes
  for (const name of [...first, ...rest, ...last]) {
    const member = members.kept.get(name)
    if (member === undefined || member.weight > room) continue
    room -= member.weight
    taken.add(member)
  }
  const inOrder = [...members.kept.values()]
  const spared = last.flatMap((name) => members.kept.get(name) ?? []).toReversed()
  return {
    text: objectOf(inOrder.filter((member) => taken.has(member)).map(({ start, end }) => text.slice(start, end))),
    leftOut: [...new Set([...spared, ...inOrder, ...members.others])].filter((member) => !taken.has(member))
  }
}

const fits = (member: Member): boolean => member.weight <= bodyBytes

/** An object of which any part may be missing; what is none is nothing. */
const contentText = (text: string, member: Member): string => {
  if (fits(member)) return valueText(text, member)
  const members = membersOf(text, new Set(contentFields), member.valueStart, member.end)
  return members === undefined ? "null" : takeMembers(text, members, contentFields).text
}

const toolCallText = (text: string, member: Member): string => {
  if (fits(member)) return valueText(text, member)
  const members = membersOf(text, new Set([...identifying, ...spare]), member.valueStart, member.end)
  if (members === undefined) return "null"
  const short = takeMembers(text, members, [...identifying], spare.toReversed())
  const names = short.leftOut.map((left) => nameOf(text, left))
  return JSON.stringify(markTruncated(JSON.parse(short.text), names))
}

const optionsText = (text: string, member: Member): string =>
  fits(member) ? valueText(text, member) : (headOfArray(text, member.valueStart, bodyBytes) ?? "null")

/** The parameters of a message, each by what it is; those that nobody reads are not among them. */
const paramsText = (text: string, method: unknown, params: Member): string => {
  if (fits(params)) return valueText(text, params)
  const members = membersOf(text, new Set(paramFields), params.valueStart, params.end)?.kept
  if (members === undefined) return "null"
  const isPermission = method === methods.client.session.requestPermission
  return objectOf(
    paramFields.flatMap((name) => {
      const member = members.get(name)
      if (member === undefined) return []
      if (name === "toolCall") return isPermission ? [`"toolCall":${toolCallText(text, member)}`] : []
      if (name === "options") return isPermission ? [`"options":${optionsText(text, member)}`] : []
      return [`"${name}":${contentText(text, member)}`]
    })
  )
}

const readLarge = (text: string): Result.Result<unknown, string> => {
  const members = membersOf(text, new Set(frameFields))?.kept
  const id = members?.get("id")
  const method = members?.get("method")
  if (members === undefined || (id === undefined && method === undefined)) return Result.fail("no message")
  if ((id?.weight ?? 0) > idWeight || (method?.weight ?? 0) > idWeight) return Result.fail("no message")
  const named = method === undefined ? undefined : Result.getOrUndefined(parseJson(valueText(text, method)))
  return Result.flatMap(
    Result.try({
      try: () =>
        objectOf(
          frameFields.flatMap((name) => {
            const member = members.get(name)
            if (member === undefined) return []
            return [`"${name}":${name === "params" ? paramsText(text, named, member) : contentText(text, member)}`]
          })
        ),
      catch: () => "the text is no JSON"
    }),
    parseJson
  )
}

/** The message on a line, or why it is none. */
export const readFrame = (text: string): Result.Result<unknown, string> =>
  text.length <= wholeUnits ? parseJson(text) : readLarge(text)
