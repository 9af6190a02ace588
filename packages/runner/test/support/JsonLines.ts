/** JSON values from a socket, one a line. Node's `readline` also splits at U+2028, which is data. */
import type { Socket } from "node:net"

export const onJsonLine = (socket: Socket, take: (value: unknown) => void): void => {
  let rest = ""
  socket.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) take(JSON.parse(line))
  })
}
