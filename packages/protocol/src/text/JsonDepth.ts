/** How deep a JSON value may nest before what walks through it runs out of stack. */

/** Whether a value is nested deeper than so many levels; it is not looked into any deeper than that. @since 0.1.0 */
export const nestsDeeper = (value: unknown, levels: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => nestsDeeper(inner, levels - 1)))
