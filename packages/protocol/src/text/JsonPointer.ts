/**
 * Putting a value where a JSON Pointer (RFC 6901) says: how a field that was cut is made whole again from its artifact.
 *
 * @since 0.1.0
 */

type Mutable = Record<string, unknown> | Array<unknown>

const isContainer = (value: unknown): value is Mutable => typeof value === "object" && value !== null

/** Sets the value in place. A pointer to nothing, or to the whole, changes nothing. @since 0.1.0 */
export const setAtPointer = (root: unknown, pointer: string, value: unknown): void => {
  const keys = pointer
    .split("/")
    .slice(1)
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"))
  const last = keys.pop()
  let target = root
  for (const key of keys) {
    if (!isContainer(target) || !Object.hasOwn(target, key)) return
    target = Reflect.get(target, key)
  }
  if (last !== undefined && isContainer(target)) Reflect.set(target, last, value)
}
