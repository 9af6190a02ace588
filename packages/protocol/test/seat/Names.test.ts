import { assert, describe, it } from "@effect/vitest"
import {
  AskId,
  MemberName,
  mintSeatId,
  NodeId,
  PodName,
  readSeatReference,
  RigName,
  RowId,
  SessionName,
  sessionNameOf
} from "@tackroom/protocol/seat"
import { Effect, Schema } from "effect"

const random = new Uint8Array(10).fill(0xa5)

describe("names of seats", () => {
  it.effect.prop(
    "a session name and a dotted name lead back to the parts of their seat, whatever hyphens they hold",
    [PodName, MemberName, RigName],
    ([pod, member, rig]) =>
      Effect.sync(() => {
        const parts = { pod, member, rig }
        assert.isTrue(Schema.is(SessionName)(sessionNameOf(parts)))
        assert.deepStrictEqual(readSeatReference(sessionNameOf(parts)), parts)
        assert.deepStrictEqual(readSeatReference(`${pod}.${member}@${rig}`), parts)
      })
  )

  it("an id is told from a name, and anything else is nothing", () => {
    const node = mintSeatId("node", 1_000, random)
    assert.deepStrictEqual(readSeatReference(node), { nodeId: node })
    for (const text of ["", "@", "dev", "dev-a", "dev@mill", "dev.a.b@mill", "de v-a@mill", "nod_1", "a-b@c@d"]) {
      assert.isUndefined(readSeatReference(text), text)
    }
  })

  it("minted ids pass their own check and no other's", () => {
    assert.isTrue(Schema.is(AskId)(mintSeatId("ask", 1, random)))
    assert.isTrue(Schema.is(RowId)(mintSeatId("row", 1, random)))
    assert.isFalse(Schema.is(NodeId)(mintSeatId("row", 1, random)))
  })
})
