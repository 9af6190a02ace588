/** Things that happened, in order, and waiting for those that will. */
export class Told<A> {
  readonly all: Array<A> = []
  readonly #waiting = new Set<() => void>()

  add(item: A): void {
    this.all.push(item)
    for (const look of this.#waiting) look()
  }

  /** The nth one that fits, now or later. */
  nth<B extends A>(n: number, fits: (item: A) => item is B): Promise<B>
  nth(n: number, fits: (item: A) => boolean): Promise<A>
  nth(n: number, fits: (item: A) => boolean): Promise<A> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.all.filter(fits)[n - 1]
        if (found === undefined) return
        this.#waiting.delete(look)
        resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
  }

  first<B extends A>(fits: (item: A) => item is B): Promise<B>
  first(fits: (item: A) => boolean): Promise<A>
  first(fits: (item: A) => boolean): Promise<A> {
    return this.nth(1, fits)
  }
}
