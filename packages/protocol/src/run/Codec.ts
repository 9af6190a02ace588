/**
 * Between wire JSON and the TypeScript values of the method table, compiled once per method.
 *
 * `decodeParams` and `decodeResult` map names, drop what the schema does not name, take null for absent, and check;
 * `encodeParams` and `encodeResult` map names and leave out what has no value. Encoding does not check: its input is
 * typed. Events inside a result are in wire form already and pass through as they are.
 */
import { Result, type Schema, SchemaAST, SchemaParser } from "effect"
import { type FieldIssue, fieldIssues } from "../internal/Issues.ts"
import { memoised } from "../internal/Lazy.ts"
import { toWireName } from "../text/WireNames.ts"
import { isFreeJson, wireMapper } from "./internal/WireMapper.ts"
import { methodNames, type MethodName, methods, type ParamsOf, type ResultOf } from "./Methods.ts"
import { type NotificationName, notificationNames, type NotificationParams, notifications } from "./Notifications.ts"
import { InvalidParams } from "./RunErrors.ts"

/** A value that does not fit its schema: the wire path of the first bad field and the first ten of them. */
const invalidParams = (issues: ReadonlyArray<FieldIssue>): InvalidParams => {
  const first = issues[0] ?? { path: "", expected: "another value" }
  return new InvalidParams({ path: first.path, expected: first.expected, issues: [...issues] })
}

/** Both directions of one schema between the wire and TypeScript. */
export interface WireCodec<A> {
  /** Wire JSON to a checked value; the error names wire paths and no value. */
  readonly decode: (json: unknown) => Result.Result<A, InvalidParams>
  /** A value to wire JSON, ready for `JSON.stringify`. */
  readonly encode: (value: A) => unknown
}

/** The codec of a schema, compiled at its first use: call it at module scope. For configuration files and other single messages. */
export const wireCodec = <S extends Schema.Constraint>(schema: S): WireCodec<S["Type"]> => {
  const mapper = wireMapper(schema)
  const codec = schema as unknown as Schema.Codec<S["Type"], unknown>
  const decode = memoised(() => SchemaParser.decodeUnknownResult(codec))
  return {
    decode: (json) => {
      const value = mapper.fromWire(json)
      const decoded = decode()(value)
      if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
      const all = SchemaParser.decodeUnknownResult(codec, { errors: "all" })(value)
      const issue = Result.isFailure(all) ? all.failure : decoded.failure
      return Result.fail(invalidParams(fieldIssues(schema.ast, issue, { nameOf: toWireName })))
    },
    encode: mapper.toWire
  }
}

/** A codec whose values only the typed functions below put in and take out. */
interface AnyCodec {
  readonly decode: (json: unknown) => Result.Result<unknown, InvalidParams>
  readonly encode: (value: never) => unknown
}

/** Codecs by name, each compiled at its first use: a program that starts needs few of them. */
const lazyCodecs = (names: ReadonlyArray<string>, schemaOf: (name: string) => Schema.Constraint) => {
  const known = new Set(names)
  const compiled = new Map<string, AnyCodec>()
  return <A>(name: string): WireCodec<A> => {
    let codec = compiled.get(name)
    if (codec === undefined) {
      if (!known.has(name)) throw new Error(`the tables of the run protocol do not name ${name}`)
      codec = wireCodec(schemaOf(name))
      compiled.set(name, codec)
    }
    return codec as WireCodec<A>
  }
}

const paramsCodec = lazyCodecs(methodNames, (name) => methods[name as MethodName].params)
const resultCodec = lazyCodecs(methodNames, (name) => methods[name as MethodName].result)
const notificationCodec = lazyCodecs(notificationNames, (name) => notifications[name as NotificationName].params)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const notAnObject = memoised(() => Result.fail(invalidParams([{ path: "", expected: "an object" }])))

/** Params are an object; absent ones count as empty. */
const decodeObject = <A>(codec: WireCodec<A>, json: unknown): Result.Result<A, InvalidParams> => {
  const params = json ?? {}
  return isObject(params) ? codec.decode(params) : notAnObject()
}

/** The params of a request, checked; absent params count as empty. */
export const decodeParams = <M extends MethodName>(
  method: M,
  json: unknown
): Result.Result<ParamsOf<M>, InvalidParams> => decodeObject(paramsCodec<ParamsOf<M>>(method), json)

/** The params of a request as wire JSON. */
export const encodeParams = <M extends MethodName>(method: M, params: ParamsOf<M>): unknown =>
  paramsCodec<ParamsOf<M>>(method).encode(params)

/** The result of a request, checked. */
export const decodeResult = <M extends MethodName>(
  method: M,
  json: unknown
): Result.Result<ResultOf<M>, InvalidParams> => resultCodec<ResultOf<M>>(method).decode(json)

/** The result of a request as wire JSON. */
export const encodeResult = <M extends MethodName>(method: M, result: ResultOf<M>): unknown =>
  resultCodec<ResultOf<M>>(method).encode(result)

/** The params of a notification, checked; absent params count as empty. */
export const decodeNotification = <N extends NotificationName>(
  name: N,
  json: unknown
): Result.Result<NotificationParams<N>, InvalidParams> =>
  decodeObject(notificationCodec<NotificationParams<N>>(name), json)

/** The params of a notification as wire JSON. */
export const encodeNotification = <N extends NotificationName>(name: N, params: NotificationParams<N>): unknown =>
  notificationCodec<NotificationParams<N>>(name).encode(params)

/**
 * The wire paths of the fields that a schema does not name, at most `limit`: what a host warns of in its configuration
 * (RUN-080). Free JSON and maps have no unknown fields.
 */
export const unknownFields = (schema: Schema.Constraint, json: unknown, limit = 100): ReadonlyArray<string> => {
  const found: Array<string> = []
  const walk = (ast: SchemaAST.AST, value: unknown, path: string): void => {
    if (found.length >= limit || isFreeJson(ast)) return
    if (SchemaAST.isUnion(ast)) {
      const types = ast.types.filter((type) => SchemaAST.isObjects(type) || SchemaAST.isArrays(type))
      const [only] = types
      if (types.length === 1 && only !== undefined) return walk(only, value, path)
      return unionFields(types, value, path)
    }
    if (SchemaAST.isArrays(ast) && Array.isArray(value)) {
      const item = ast.rest[0]
      if (item !== undefined) value.forEach((member, index) => walk(item, member, `${path}[${index}]`))
      return
    }
    if (!SchemaAST.isObjects(ast) || !isObject(value)) return
    if (ast.propertySignatures.length === 0) {
      const member = ast.indexSignatures[0]
      if (member !== undefined) {
        for (const key of Object.keys(value)) walk(member.type, value[key], join(path, key))
      }
      return
    }
    const fields = new Map(ast.propertySignatures.map(({ name, type }) => [toWireName(String(name)), type]))
    for (const key of Object.keys(value)) {
      const type = fields.get(key)
      if (type !== undefined) walk(type, value[key], join(path, key))
      else if (found.length < limit) found.push(join(path, key))
    }
  }
  /** Of a union of structs a field is unknown when no member names it. */
  const unionFields = (types: ReadonlyArray<SchemaAST.AST>, value: unknown, path: string): void => {
    if (!isObject(value) || types.length === 0 || !types.every(SchemaAST.isObjects)) return
    const known = new Set(types.flatMap((type) => type.propertySignatures.map(({ name }) => toWireName(String(name)))))
    for (const key of Object.keys(value)) {
      if (!known.has(key) && found.length < limit) found.push(join(path, key))
    }
  }
  walk(schema.ast, json, "")
  return found
}

const join = (path: string, key: string): string =>
  /^[A-Za-z_][A-Za-z0-9_-]*$/.test(key) ? (path === "" ? key : `${path}.${key}`) : `${path}[${JSON.stringify(key)}]`
