/** What the client said it can do (ACP-210): a method of the client is called, and an update sent, only if it is here. */
import type { ClientCapabilities } from "@agentclientprotocol/sdk"

export interface Client {
  readonly notices: boolean
  readonly compaction: boolean
  readonly booleanOptions: boolean
  readonly forms: boolean
  readonly terminalAuth: boolean
  readonly readsFiles: boolean
  readonly writesFiles: boolean
  readonly terminals: boolean
}

export const clientOf = (capabilities: ClientCapabilities | undefined): Client => ({
  notices: capabilities?.session?.notices != null,
  compaction: capabilities?.session?.compaction != null,
  booleanOptions: capabilities?.session?.configOptions?.boolean != null,
  forms: capabilities?.elicitation?.form != null,
  terminalAuth: capabilities?.auth?.terminal === true,
  readsFiles: capabilities?.fs?.readTextFile === true,
  writesFiles: capabilities?.fs?.writeTextFile === true,
  terminals: capabilities?.terminal === true
})
