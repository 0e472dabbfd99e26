package client

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
)

// Calls that may be answered differently in a batch are repeated by themselves: a claimed task without its payload,
// nothing to claim in a full answer, and an op that is refused as malformed.
func TestTogether_fallsShort(t *testing.T) {
	t.Parallel()
	bare := `{"success":true,"task":{"id":2,"status":"claimed","worker_id":"w1","claim_token":2,"lease_remaining_ms":30000}`
	full := strings.Repeat(" ", fullAnswerMin)
	none := `{"success":false,"error":"none","code":"no_pending_tasks","message":"none"`
	for name, result := range map[string]string{
		"bare":      bare + `}`,
		"bare many": `{"success":true,"tasks":[{"id":2,"status":"claimed","worker_id":"w1","claim_token":2,"lease_remaining_ms":30000}]}`,
		"full":      none + full + `}`,
		"reach":     `{"success":false,"error":"too many","code":"invalid_request","message":"M","field":"ops"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crowd(t, func(t *testing.T, c *crowded) {
				var cl *Claim
				before := begin(func() error { _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"}); return err })
				first := c.request(0, "/api/batch")
				nothing := none + `}`
				also := begin(func() error { _, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"}); return err })
				synctest.Wait()
				errs := begin(func() (err error) { cl, err = c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"}); return err })
				synctest.Wait()
				first.say(200, `{"success":true,"results":[`+nothing+`],"failed":1}`)
				wantErrors(t, before, ErrNoTasks)
				h := c.request(1, "/api/batch")
				h.say(200, `{"success":true,"results":[`+nothing+`,`+result+`],"failed":1}`)
				own := c.request(2, claimPath)
				if name == "full" { // for both
					other := c.request(3, claimPath)
					if !strings.Contains(own.body, "claim_request_place") {
						own, other = other, own
					}
					other.say(404, nothing)
				}
				wantErrors(t, also, ErrNoTasks)
				var shared struct {
					ID  string `json:"claim_request_id"`
					Ops []json.RawMessage
				}
				if err := json.Unmarshal([]byte(h.body), &shared); err != nil || len(shared.ID) != 26 || len(shared.Ops) != 2 {
					t.Fatalf("sent %s, %v", h.body, err)
				}
				if want := strings.Replace(string(shared.Ops[1]), `{"op":"claim",`, `{"claim_request_id":"`+shared.ID+`","claim_request_place":1,`, 1); own.body != want {
					t.Errorf("alone it is %s, among others %s", own.body, h.body)
				}
				own.say(200, claimedTask)
				wantErrors(t, errs, nil)
				if cl == nil || string(cl.Task.Payload) != `{"to":"ada"}` {
					t.Fatalf("it claimed %+v", cl)
				}
			})
		})
	}
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		crowd(t, func(t *testing.T, c *crowded) {
			errs := begin(func() error {
				_, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1", RequestID: "mine"})
				return err
			})
			c.request(0, "/api/batch").say(200, `{"success":true,"results":[`+strings.Replace(bare, `"status"`, `"claim_state":"ended","status"`, 1)+`}],"failed":0}`)
			wantErrors(t, errs, ErrStaleClaim)
			if n := c.requests(); n != 1 {
				t.Errorf("%d requests: what has ended needs no payload", n)
			}
		})
	})
}

// The next claim of a completion goes on with its request's id and its place when the completion leaves the request.
func TestTogether_leavesWithItsPair(t *testing.T) {
	t.Parallel()
	crowd(t, func(t *testing.T, c *crowded) {
		cl := c.someClaims("1", "2", "3")
		first := begin(func() error { return cl[0].Complete(t.Context(), nil) })
		out := c.request(1, "/api/batch")
		rest := begin(
			func() error { _, err := cl[1].CompleteAndClaim(t.Context(), nil, ClaimRequest{}); return err },
			func() error { _, err := cl[2].CompleteAndClaim(t.Context(), nil, ClaimRequest{}); return err },
		)
		synctest.Wait()
		out.say(200, `{"success":true,"results":[{"success":true,"task":{"id":1}}],"failed":0}`)
		wantErrors(t, first, nil)
		h := c.request(2, "/api/batch")
		var shared struct {
			ID string `json:"claim_request_id"`
		}
		if err := json.Unmarshal([]byte(h.body), &shared); err != nil || len(shared.ID) != 26 || strings.Count(h.body, "claim_request") != 1 {
			t.Fatalf("sent %s, %v", h.body, err)
		}
		h.say(400, `{"success":false,"error":"E","code":"invalid_request","message":"M"}`)
		if n := c.requests(); n != 5 {
			t.Fatalf("%d requests, want one for each completion", n)
		}
		for _, alone := range c.got[3:] {
			want := `"claim":{"claim_request_id":"` + shared.ID + `"}`
			if strings.Contains(alone.path, "/3/") {
				want = `"claim":{"claim_request_id":"` + shared.ID + `","claim_request_place":1}`
			}
			if !strings.Contains(alone.body, want) {
				t.Errorf("%s is sent %s, want %s", alone.path, alone.body, want)
			}
			alone.say(200, okAnswer)
		}
		wantErrors(t, rest, ErrNoTasks)
	})
}
