/**
 * Whether this Node can run our programs. They ask before anything else: what an old Node lacks shows as a fault deep inside
 * a bundle otherwise.
 */

/** The oldest Node that our programs run on: major and minor. */
const oldest = [22, 19] as const

/** What to tell a person whose Node is too old; undefined when it is not. */
export const refusedNode = (version: string): string | undefined => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const [least, leastMinor] = oldest
  if (major > least || (major === least && minor >= leastMinor)) return undefined
  return `Node ${least}.${leastMinor} or newer is needed, and this is Node ${version}`
}
