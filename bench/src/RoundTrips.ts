/** Small requests over stdio beside a bare echo between two Node processes, with one client for both. */
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { start } from "./MeasuredProcess.ts"
import { RawClient, requestRate } from "./RawClient.ts"
import { atLeast, compare, type Bench, type Row } from "./Report.ts"
import { inRounds } from "./Statistics.ts"
import { environment, withHost } from "./TackroomHost.ts"

const measure = "round trips"

export const roundTrips = (bench: Bench): Promise<ReadonlyArray<Row>> =>
  withHost(bench, { stateDir: join(bench.folder, "round-trips") }, async (host) => {
    const program = start({
      command: process.execPath,
      args: [fileURLToPath(new URL("echo/main.ts", import.meta.url))],
      env: environment(bench)
    })
    try {
      const bare = new RawClient(program)
      const rounds = bench.isQuick ? 5 : 9
      // What the echo sends back is as large as what the host answers.
      const payload = await host.client.request("host/info")
      const rows: Array<Row> = []
      for (const [outstanding, count] of [
        [1, bench.isQuick ? 1_000 : 3_000],
        [64, bench.isQuick ? 6_000 : 20_000]
      ] as const) {
        const ours = () => requestRate(() => host.client.request("host/info"), count, outstanding)
        const echo = () => requestRate(() => bare.request("echo"), count, outstanding)
        const sameBytes = () => requestRate(() => bare.request("echo", payload), count, outstanding)
        await ours()
        await echo()
        const results = await inRounds(rounds, [
          { name: "ours", run: ours },
          { name: "echo", run: echo },
          { name: "same bytes", run: sameBytes }
        ])
        const of = (name: string) => results.get(name) ?? []
        rows.push(
          compare({
            measure,
            name: `host/info, ${outstanding} outstanding`,
            unit: "/s",
            ours: of("ours"),
            baseline: "bare echo, empty object",
            theirs: of("echo"),
            bar: (ratio) => atLeast(0.5, ratio, "≥ 0.5")
          }),
          compare({
            measure,
            name: `host/info, ${outstanding} outstanding`,
            unit: "/s",
            ours: of("ours"),
            baseline: "bare echo, answer as large",
            theirs: of("same bytes")
          })
        )
      }
      return rows
    } finally {
      await program.finish()
    }
  })
