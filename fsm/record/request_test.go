package record

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// The fields by which a packed request is forgotten equal those of the request.
func TestScanRequest(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		q := Request{ID: rapid.StringN(1, 200, -1).Draw(t, "id"), ForgetU: rapid.Int64Min(1).Draw(t, "forget")}
		place := uint32(0)
		for range rapid.IntRange(1, 70).Draw(t, "claims") {
			place += rapid.Uint32Range(0, 1).Draw(t, "place")
			q.Claims = append(q.Claims, RequestClaim{
				ClaimRef: ClaimRef{TaskID: rapid.Uint64Range(1, 1<<53).Draw(t, "task"), Token: rapid.Uint64Range(1, 1<<53).Draw(t, "token")},
				Asked:    rapid.Uint64Range(1, 2).Draw(t, "asked") << 62,
				Place:    place,
			})
		}
		packed := RestingRequests{}.Pack(nil, rapid.Uint64Range(1, 1<<53).Draw(t, "seq"), &q)
		got := ScanRequest(packed)
		if string(got.ID) != q.ID || got.Claims != len(q.Claims) || got.Bytes != BytesOfRequest(&q) || got.ForgetU != q.ForgetU {
			t.Fatalf("%+v is forgotten by %+v, %d bytes", q, got, BytesOfRequest(&q))
		}
	})
}
