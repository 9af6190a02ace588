/**
 * Things of this package that are made at their first use. A program that starts needs a few of the several hundred
 * schemas here; making all of them takes longer than all it does until its first answer.
 *
 * What is given out is complete from the start: types, identity and `instanceof` do not change when the thing is made.
 */

/** A value that is made at the first call. */
export const memoised = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}

/** A schema that is made at its first use; to be used like the schema itself, and made from what is defined above it. */
export const lazySchema = <S extends object>(make: () => S): S => {
  const real = memoised(make)
  const target = Object.create(null) as S
  return new Proxy(target, {
    get: (_, key) => Reflect.get(real(), key),
    has: (_, key) => Reflect.has(real(), key)
  })
}

type Constructor = new (...args: ReadonlyArray<never>) => object

/**
 * A base class that is made when the class which extends it is first constructed or asked for a static member other than
 * `statics`. From then on that class extends what was made, as if it had from the start. To be extended directly.
 */
export const lazyClass = <C>(make: () => C, statics: Readonly<Record<string, unknown>> = {}): C => {
  const real = memoised(() => Object.assign(make() as unknown as Constructor, statics))
  const stand = Object.assign(function () {}, statics) as unknown as Constructor
  const settle = (receiver: object): Constructor => {
    const Class = real()
    for (let at: object | null = receiver; at !== null; at = Object.getPrototypeOf(at)) {
      if (Object.getPrototypeOf(at) !== proxy) continue
      Object.setPrototypeOf(at, Class)
      if (typeof at === "function") Object.setPrototypeOf(at.prototype, Class.prototype)
      break
    }
    return Class
  }
  const proxy: Constructor = new Proxy(stand, {
    // What every function has says nothing about the class: `instanceof` alone does not make it.
    get: (target, key, receiver) =>
      Reflect.has(target, key) ? Reflect.get(target, key, receiver) : Reflect.get(settle(receiver), key, receiver),
    has: (_, key) => Reflect.has(real(), key),
    construct: (_, args, newTarget) => Reflect.construct(settle(newTarget), args, newTarget)
  })
  return proxy as unknown as C
}
