package codec

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm"
)

// TestDecode_CommandsOwnTheirBytes checks that a command shares no memory with the request, which the next one
// overwrites.
func TestDecode_CommandsOwnTheirBytes(t *testing.T) {
	t.Parallel()
	body := []byte(`{"tasks":[{"params":{"a":"b"},"task_type":"tt","idempotency_key":"kk"},{"payload":"AAAA","idempotency_key":"k\u0065"}]}`)
	limits := Limits{}
	limits.SetDefaults()
	req, bad := DecodeSubmit(body, &limits)
	if bad != nil {
		t.Fatal(bad.Text)
	}
	claimBody := []byte(`{"worker_id":"ww","task_types":["xx"],"claim_request_id":"r\u0072"}`)
	claim, bad := DecodeClaim(claimBody, &limits)
	if bad != nil {
		t.Fatal(bad.Text)
	}
	failBody := []byte(`{"worker_id":"ww","error":"ee"}`)
	fail := &Fail{}
	if bad := Decode(fail, failBody, &limits); bad != nil {
		t.Fatal(bad.Text)
	}
	for _, b := range [][]byte{body, claimBody, failBody} {
		for i := range b {
			b[i] = '!'
		}
	}
	// The decoder's own memory is reused, too.
	if _, bad := DecodeClaim([]byte(`{"worker_id":"\u0021\u0021\u0021"}`), &limits); bad == nil {
		t.Fatal("not refused")
	}
	want := []fsm.NewTask{
		{Type: "tt", Params: []byte(`{"a":"b"}`), Key: "kk", MaxAttempts: fsm.DefaultAttempts},
		{Type: "default", Payload: []byte{0, 0, 0}, Key: "ke", MaxAttempts: fsm.DefaultAttempts},
	}
	if diff := cmp.Diff(want, req.Tasks); diff != "" {
		t.Errorf("submit (-want +got):\n%s", diff)
	}
	if claim.Cmd.WorkerID != "ww" || claim.Cmd.Types[0] != "xx" || claim.Cmd.RequestID != "rr" || fail.Cmd.Error != "ee" {
		t.Errorf("claim %+v, fail %+v", claim.Cmd, fail)
	}
}
