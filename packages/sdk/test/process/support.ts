import { spawnSync } from "node:child_process"
import { Effect, Stream } from "effect"
import { type Child, makeProcessOwner, type ProcessOwnerOptions, type SpawnSpec } from "../../src/process/index.ts"

const decoder = new TextDecoder()

/** An owner that ends with the scope, over this process's own environment. */
export const owner = (options?: Partial<ProcessOwnerOptions>) =>
  Effect.acquireRelease(
    Effect.sync(() => makeProcessOwner({ instanceId: "test", environment: process.env, ...options })),
    (owner) => owner.dispose
  )

export const sh = (script: string, more?: Partial<SpawnSpec>): SpawnSpec => ({
  role: "harness",
  command: "/bin/sh",
  args: ["-c", script],
  ...more
})

/** All of a child's stdout as text. */
export const outputOf = (child: Child) =>
  Effect.map(
    Stream.runFold(
      child.stdout,
      () => "",
      (text, chunk) => text + decoder.decode(chunk)
    ),
    (text) => text
  )

/** Waits for the first thing a child says. */
export const firstOutput = (child: Child) =>
  Effect.map(Stream.runHead(child.stdout), (head) => (head._tag === "Some" ? decoder.decode(head.value).trim() : ""))

/** Pids of the living children of a process. */
export const childrenOf = (parent: number): ReadonlyArray<number> =>
  spawnSync("ps", ["-A", "-o", "pid=,ppid=,comm="], { encoding: "utf8" })
    .stdout.split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[1] === String(parent) && fields[2] !== "ps")
    .map((fields) => Number(fields[0]))
