/** One numbered rule of the specifications, in our own words. */
export interface Requirement {
  readonly id: string
  /** What the rule asks for, at most 90 characters. */
  readonly title: string
  /** Why nothing tests the rule yet: the work it comes with. An open rule is not cited. */
  readonly open?: string
  /** What is still missing of a rule that tests already cite. */
  readonly remains?: string
}

/** A rule that should be cited by a test and is not, with the reason. */
export interface Uncited {
  readonly id: string
  readonly reason: string
}

export const notYetCited = "not yet cited"
