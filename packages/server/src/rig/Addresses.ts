/**
 * Addresses of this service that running seats were given at their launch. A seat learns no other one while it lives; so
 * where the system chooses a port, a restart takes the one that its seats know, and seats that know another are cut off
 * and named: until they are launched again their runners decide alone. Pure.
 */

export interface KnownAddress {
  /** The session name. */
  readonly seat: string
  readonly guest: boolean
  readonly url: string
}

export interface Addresses {
  readonly main: string
  /** `null` when there is no listener for guests; absent when guests reach it under a name that somebody else looks after. */
  readonly guest?: string | null
}

/** The ports that running seats know of a listener, those of the last launch first. */
export const knownPorts = (known: ReadonlyArray<KnownAddress>, guest: boolean): ReadonlyArray<number> =>
  [...new Set(known.filter((one) => one.guest === guest).map(({ url }) => Number(URL.parse(url)?.port ?? "")))].filter(
    (port) => port > 0
  )

/** The seats that reach nobody at the address they know. */
export const cutOff = (
  known: ReadonlyArray<KnownAddress>,
  now: Addresses
): ReadonlyArray<{ readonly seat: string; readonly url: string }> =>
  known.flatMap(({ guest, seat, url }) => {
    const here = guest ? now.guest : now.main
    return here === undefined || url === here ? [] : [{ seat, url }]
  })
