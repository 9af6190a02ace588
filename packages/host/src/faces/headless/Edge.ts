/** What `tackroom run` needs of its process. */
import type { ProtocolOutput } from "@tackroom/sdk/process"
import type { FaceProcess } from "../start/FaceHost.ts"
import type { RunArguments } from "./Arguments.ts"
import type { Style } from "./Style.ts"
import type { Terminal } from "./Terminal.ts"

export interface Edge {
  readonly face: FaceProcess
  readonly options: RunArguments
  readonly stdoutTerminal: boolean
  readonly stderrTerminal: boolean
  readonly style: Style
  /** All of stdin, or undefined when it is larger than `limit` bytes. */
  readonly readStdin: (limit: number) => Promise<Uint8Array | undefined>
  readonly openTerminal: () => Terminal
  /** Where the answer or the lines of `--json` go. */
  readonly output: ProtocolOutput
  readonly writeOut: (text: string) => void
  readonly writeErr: (text: string) => void
  /** Aborted by the first signal, or when the reader of stdout is gone. */
  readonly cancelled: AbortSignal
}
