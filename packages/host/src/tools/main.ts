/**
 * The process edge of `tackroom tool-runner`: standard streams, environment, signals. The loop is `RunnerMain.ts`.
 *
 * SIGTERM is taken as the end of input, because the guard of a dead host sends it while commands are still at work.
 */
import { toolRunnerMain } from "./RunnerMain.ts"

/** Runs the tool runner in this process and exits with its code. */
export const runToolRunner = async (version: string): Promise<never> => {
  const stop = new AbortController()
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => stop.abort())
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) if (value !== undefined) env[name] = value
  const code = await toolRunnerMain({
    version,
    input: process.stdin,
    output: process.stdout,
    env,
    now: () => performance.now(),
    signal: stop.signal
  })
  process.exit(code)
}
