package client_test

import (
	"bytes"
	"testing"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// Claims of a batch that do not fit into one answer are all made, and come with their payloads.
func TestClient_Batch_fullAnswer(t *testing.T) {
	t.Parallel()
	const each, claims = 8, 3
	c := clienttest.New(t).Client()
	payload := bytes.Repeat([]byte{0xff}, 900<<10)
	for range each * claims {
		if _, err := c.Submit(t.Context(), client.Task{Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	var ops []client.Op
	for range claims {
		ops = append(ops, client.ClaimOp(client.ClaimRequest{WorkerID: "w"}, each))
	}
	results, err := c.Batch(t.Context(), ops...)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if len(r.Claims) == 0 {
			t.Errorf("claim %d got nothing", i)
		}
		for _, cl := range r.Claims {
			if !bytes.Equal(cl.Task.Payload, payload) {
				t.Errorf("claim %d: task %s has a payload of %d bytes", i, cl.Task.ID, len(cl.Task.Payload))
			}
		}
	}
}
