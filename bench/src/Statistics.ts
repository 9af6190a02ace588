/** Medians, percentiles and rounds in which every contestant has its turn, so that noise hits all of them. */

export const median = (values: ReadonlyArray<number>): number => percentile(values, 0.5)

/** The value below which this share of the values lies, by linear interpolation; NaN of nothing. */
export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const low = sorted[Math.floor(at)] ?? Number.NaN
  const high = sorted[Math.ceil(at)] ?? Number.NaN
  return low + (high - low) * (at - Math.floor(at))
}

export interface Contestant {
  readonly name: string
  /** One result. A contestant that is slow may take part in the first rounds only. */
  readonly run: (round: number) => Promise<number>
  readonly rounds?: number
}

/** Results by name and round. Who begins changes from round to round. */
export const inRounds = async (
  rounds: number,
  contestants: ReadonlyArray<Contestant>
): Promise<ReadonlyMap<string, ReadonlyArray<number>>> => {
  const results = new Map(contestants.map(({ name }) => [name, new Array<number>()]))
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < contestants.length; i++) {
      const contestant = contestants[(i + round) % contestants.length]
      if (contestant === undefined || round >= (contestant.rounds ?? rounds)) continue
      results.get(contestant.name)?.push(await contestant.run(round))
    }
  }
  return results
}

/** The median of the ratios within each round: what both saw of the machine cancels out. */
export const ratioOf = (ours: ReadonlyArray<number>, baseline: ReadonlyArray<number>): number =>
  median(ours.slice(0, baseline.length).map((value, i) => value / (baseline[i] ?? Number.NaN)))
