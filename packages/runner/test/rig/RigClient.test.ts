/** The client against a rig in a thread of its own, which answers while this one stands still. */
import { Worker } from "node:worker_threads"
import { Effect, Result } from "effect"
import { assert, describe, it, onTestFinished } from "vitest"
import { findEndpoint } from "../../src/rig/Endpoint.ts"
import { makeRigClient } from "../../src/rig/RigClient.ts"

/** Tells its port, then every request; answers when this thread stands still, or never. */
const rigThread = `
const { parentPort, workerData } = require("node:worker_threads")
const server = require("node:http").createServer((request, response) => {
  request.resume().on("end", () => {
    const gate = new Int32Array(workerData.gate)
    parentPort.postMessage("asked")
    if (!workerData.answers) return
    Atomics.wait(gate, 0, 0)
    response.end('{"ok":true}')
  })
})
server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port))`

const limitMs = 400

const startRig = async (answers: boolean) => {
  const gate = new SharedArrayBuffer(4)
  const worker = new Worker(rigThread, { eval: true, workerData: { gate, answers } })
  onTestFinished(() => worker.terminate().then(() => undefined))
  const port = await new Promise<number>((resolve) => worker.once("message", resolve))
  const environment = { OPENRIG_URL: `http://127.0.0.1:${port}`, OPENRIG_ACTIVITY_HOOK_TOKEN: "token" }
  const client = makeRigClient(findEndpoint(environment, () => undefined))
  const send = client.send({ method: "POST", path: "/api/activity/permission-requests", body: {}, limitMs })
  return { worker, gate: new Int32Array(gate), ask: () => Effect.runPromise(Effect.result(send)) }
}

/** This thread turns no loop for so long. */
const standStill = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

describe("the limit of a request to the rig", () => {
  it("counts no time in which this program stood still and could read no answer [SEAT-162]", async () => {
    const { ask, gate, worker } = await startRig(true)
    worker.once("message", () => {
      Atomics.store(gate, 0, 1)
      Atomics.notify(gate, 0)
      standStill(limitMs * 3)
    })
    assert.deepStrictEqual(await ask(), Result.succeed({ status: 200, body: { ok: true } }))
  })

  it("ends the wait for a rig that is silent [SEAT-162]", async () => {
    const { ask } = await startRig(false)
    const start = performance.now()
    const answer = await ask()
    assert.isTrue(Result.isFailure(answer) && answer.failure.reason === "timeout")
    assert.isAtLeast(performance.now() - start, limitMs - 10)
    assert.isBelow(performance.now() - start, limitMs * 4)
  })
})
