package record

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// The fields by which a packed record of a removed task is forgotten equal those of the record.
func TestScanGone(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 200, -1)
		g := Gone{
			Key: text.Draw(t, "key"), Type: text.Draw(t, "type"), WorkerID: text.Draw(t, "worker"), Status: StatusFailed,
			Token: rapid.Uint64Max(1<<53).Draw(t, "token"), Outcome: OutcomeFailed, Same: rapid.Uint64().Draw(t, "same"),
			ForgetU: rapid.Int64Min(1).Draw(t, "forget"),
		}
		g.KeyOfType = g.Key != "" && rapid.Bool().Draw(t, "key of type")
		submitted, claims := rapid.IntRange(0, 40).Draw(t, "submitted"), rapid.IntRange(0, 40).Draw(t, "claims")
		if submitted+claims > 0 { // an empty Then is none
			g.Then = &Then{Submitted: make([]FollowUp, submitted), Claims: make([]ClaimRef, claims)}
			for i := range g.Then.Submitted {
				g.Then.Submitted[i] = FollowUp{ID: uint64(i) << 9, Created: i%2 == 0}
			}
			for i := range g.Then.Claims {
				g.Then.Claims[i] = ClaimRef{TaskID: uint64(i) << 9, Token: uint64(i)}
			}
		}
		got := ScanGone(RestingGone{}.Pack(nil, rapid.Uint64Range(1, 1<<53).Draw(t, "id"), &g))
		if string(got.Key) != g.Key || string(got.Type) != g.Type || got.KeyOfType != g.KeyOfType || got.Bytes != BytesOfGone(&g) || got.ForgetU != g.ForgetU {
			t.Fatalf("%+v is forgotten by %+v, %d bytes", g, got, BytesOfGone(&g))
		}
	})
}
