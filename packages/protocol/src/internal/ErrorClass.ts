/** How the classes of an error table are made: runtime, run protocol and seat contract have one each (D-33). */
import { Effect, Schema } from "effect"

/** A field that always has this value and need not be given. */
export const constant = <const Value extends string | number>(value: Value) =>
  Schema.Literal(value).pipe(Schema.withConstructorDefault(Effect.succeed(value)))

/** A field that has this value unless another is given. */
export const defaulting = (value: boolean) => Schema.Boolean.pipe(Schema.withConstructorDefault(Effect.succeed(value)))

/** The field of every error; what stands in it when none is given is made from the other fields. */
export const messageField = Schema.String.pipe(Schema.withConstructorDefault(Effect.succeed("")))

/** Makes the class of one error. The default message is filled in before the constructor checks the fields. */
export const makeErrorClass =
  <Self>() =>
  <const Tag extends string, const Fields extends Schema.Struct.Fields & { readonly message: typeof messageField }>(
    tag: Tag,
    made: {
      /** Of the schema; unlike the tag it is unique among all tables. */
      readonly identifier: string
      readonly fields: Fields
      readonly annotations: Readonly<Record<string, number>>
      readonly message: (props: object) => string
    }
  ) => {
    const Base = Schema.TaggedError<Self>(made.identifier)(tag, made.fields, made.annotations as never)
    type Props = Partial<Record<string, unknown>>
    class WithMessage extends (Base as unknown as new (props: Props, options?: unknown) => object) {
      constructor(props: Props = {}, options?: unknown) {
        super({ ...props, message: props["message"] ?? made.message(props) }, options)
      }
    }
    // Writable, because an error may have a field of that name.
    Object.defineProperty(WithMessage.prototype, "name", { value: tag, configurable: true, writable: true })
    return WithMessage as unknown as typeof Base
  }
