package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// liveClaims holds the claims that have not ended.
type liveClaims struct {
	byToken  map[uint64]claimRef
	holdings index.Holdings // by worker and by type
}

// claimRef is the entry of a claim in the index of live claims.
type claimRef struct {
	task    uint64 // id
	request uint64 // sequence number of its claim request, 0 if none is remembered
	place   uint32 // in liveClaims.holdings
}

func (c *liveClaims) reset() {
	c.byToken, c.holdings = map[uint64]claimRef{}, index.NewHoldings()
}

// hold adds the claim of a claimed task, whose type has the claims held. request is the
// number of its claim request, or 0.
func (c *liveClaims) hold(t *record.Task, held *index.Claims, request uint64) {
	c.byToken[t.Token] = claimRef{task: t.ID, request: request, place: c.holdings.Hold(held, t.WorkerID, t.ID)}
}

// letGo undoes hold. It returns the number of the claim's request, or 0.
func (c *liveClaims) letGo(t *record.Task, held *index.Claims) (request uint64) {
	ref := c.byToken[t.Token]
	delete(c.byToken, t.Token)
	c.holdings.LetGo(held, ref.place)
	return ref.request
}

// setRequest sets the number of the request of a claim, if the claim is live.
func (c *liveClaims) setRequest(token, request uint64) {
	if ref, live := c.byToken[token]; live {
		ref.request = request
		c.byToken[token] = ref
	}
}

// Bounds for remembered claim requests.
const (
	rememberMS    = 10 * 60 * 1000 // by the lease clock, after the last claim ended
	rememberedMax = 1_000_000      // claims in all requests
	// fullMin is the number of claims from which the record of a request takes no further
	// calls. These begin another record with the same id, so that no call copies many claims,
	// however many share an id.
	fullMin       = 1000
	forgetTickMax = 1024 // requests forgotten per tick
	// busyRequests is the number of pages at the end that are not packed, because most of
	// their requests have live claims.
	busyRequests = 16
)

// requests holds the claim requests that are remembered, so that they can be repeated. A
// request with many calls has several records. No two of them have the same place.
type requests struct {
	table      record.Table[record.Request] // by sequence number
	ids        *index.Names                 // claim_request_id to sequence numbers
	forgetting index.Timeline               // requests without a live claim, by ForgetU
	claims     int                          // in all requests
	bytes      int64                        // memory of all
	max        int                          // bounds claims. Only tests change it
	full       int                          // fullMin. Only tests change it
}

func newRequests() requests {
	return requests{table: record.NewTable[record.Request](record.RestingRequests{}, busyRequests), max: rememberedMax, full: fullMin}
}

// reset empties what is derived.
func (r *requests) reset() {
	r.ids, r.forgetting = index.NewNames(), index.NewTimeline()
	r.claims, r.bytes = 0, 0
}

// claimCall is a claim command as one of the calls that share a claim_request_id, the claim
// request. A repeat of a call gets the claims of its first answer.
type claimCall struct {
	id    string // claim_request_id, "" if the call is not to be remembered
	place uint32 // among the calls of the request
	asked uint64 // hash of the worker and of what it asks for: record.RequestClaim.Asked

	// What find found.
	seq     uint64                // of the record that has the call, else of one with room for it; 0 without one
	got     []record.RequestClaim // the claims of the first answer, if the call was made before
	expired uint64                // of a record with the id whose time is over, which a tick has yet to drop, or 0
}

// find looks up what is remembered of the call, at time u by the lease clock. The index yields the records of an id
// in an order that differs between nodes. That has no effect: one of them has the call, at
// most one that is not over has room, and all that are over are forgotten before anything
// changes.
func (r *requests) find(c *claimCall, u int64) {
	c.seq, c.got, c.expired = 0, nil, 0
	if c.id == "" {
		return
	}
	r.ids.Get(c.id, func(seq uint64) bool {
		q := r.table.Get(seq)
		switch {
		case q.ID != c.id:
		case q.Live == 0 && q.ForgetU <= u:
			c.expired = seq
		default:
			if got, _ := q.Call(c.place); len(got) > 0 {
				c.seq, c.got = seq, got
			} else if len(c.got) == 0 && len(q.Claims) < r.full {
				c.seq = seq
			}
		}
		return false
	})
}

// differs reports whether the call was made before, but by another worker or for other tasks.
func (c *claimCall) differs() bool { return len(c.got) > 0 && c.got[0].Asked != c.asked }

// add remembers what a call got. The index of live claims has its claims already, with the number
// of the request. known says that other calls of the request are remembered. It drops the oldest
// requests if there are too many.
func (r *requests) add(c *claimCall, known bool, got []Claim, claims *liveClaims) {
	if known {
		r.extend(c, got)
	} else {
		q := &record.Request{ID: c.id, Live: int32(len(got)), Claims: c.appendTo(nil, got)}
		r.table.Put(c.seq, q)
		r.include(c.seq, q)
	}
	for r.claims > r.max {
		oldest, _ := r.table.First()
		r.forget(oldest, claims)
	}
}

// extend adds what a call got to its request.
func (r *requests) extend(c *claimCall, got []Claim) {
	q := r.table.Edit(c.seq)
	r.bytes -= record.BytesOfRequest(q)
	if q.Live == 0 {
		r.forgetting.Remove(q.ForgetU, c.seq)
		q.ForgetU = 0
	}
	_, at := q.Call(c.place)
	later := q.Claims[at:]
	if len(later) > 0 { // other readers may share them
		later = slices.Clone(later)
		q.Claims = slices.Clip(q.Claims[:at])
	}
	q.Claims = append(c.appendTo(q.Claims, got), later...)
	q.Live += int32(len(got))
	r.claims += len(got)
	r.bytes += record.BytesOfRequest(q)
}

// appendTo appends what the call got.
func (c *claimCall) appendTo(claims []record.RequestClaim, got []Claim) []record.RequestClaim {
	claims = slices.Grow(claims, len(got))
	for i := range got {
		claims = append(claims, record.RequestClaim{ClaimRef: record.ClaimRef{TaskID: got[i].Task.ID, Token: got[i].Token}, Asked: c.asked, Place: c.place})
	}
	return claims
}

// include adds a request to what is derived of requests alone.
func (r *requests) include(seq uint64, q *record.Request) {
	r.ids.Add(q.ID, seq)
	r.claims += len(q.Claims)
	r.bytes += record.BytesOfRequest(q)
}

// index adds a saved request to everything derived, after all claims. next is the next
// sequence number. It returns what is wrong with the request, or "".
func (r *requests) index(seq uint64, q *record.Request, next uint64, claims *liveClaims) (problem string) {
	if seq == 0 || seq >= next {
		return "its number was never given out"
	}
	if r.overlaps(q) {
		return "a call of it is another's"
	}
	live := int32(0)
	for _, c := range q.Claims {
		ref, ok := claims.byToken[c.Token]
		if !ok || ref.task != c.TaskID {
			continue
		}
		if ref.request != 0 {
			return "another one has its claim"
		}
		ref.request = seq
		claims.byToken[c.Token] = ref
		live++
	}
	if live != q.Live || len(q.Claims) == 0 {
		return "its claims are not those that live"
	}
	if live == 0 {
		r.forgetting.Add(q.ForgetU, seq)
	}
	r.include(seq, q)
	return ""
}

// overlaps reports whether another record has the id of q and one of its places.
func (r *requests) overlaps(q *record.Request) bool {
	other := r.ids.Get(q.ID, func(seq uint64) bool {
		other := r.table.Get(seq)
		return other.ID == q.ID && slices.ContainsFunc(q.Claims, func(c record.RequestClaim) bool {
			claims, _ := other.Call(c.Place)
			return len(claims) > 0
		})
	})
	return other != 0
}

// exclude undoes index.
func (r *requests) exclude(seq uint64, q *record.Request, claims *liveClaims) {
	if q.Live == 0 {
		r.forgetting.Remove(q.ForgetU, seq)
	} else {
		for _, c := range q.Claims {
			claims.setRequest(c.Token, 0)
		}
	}
	r.ids.Remove(q.ID, seq)
	r.claims -= len(q.Claims)
	r.bytes -= record.BytesOfRequest(q)
}

// claimEnded counts, at time u by the lease clock, that a claim of the request has ended.
func (r *requests) claimEnded(seq uint64, u int64) {
	q := r.table.Edit(seq)
	q.Live--
	if q.Live == 0 {
		r.bytes += record.BytesOfRequest(q) - record.BytesOfLiveRequest(q)
		q.ForgetU = u + rememberMS
		r.forgetting.Add(q.ForgetU, seq)
		r.table.Rest(seq)
	}
}

// forget drops a request, even one with live claims.
func (r *requests) forget(seq uint64, claims *liveClaims) {
	if kept := r.table.Look(seq); kept.Record != nil {
		r.exclude(seq, kept.Record, claims)
	} else {
		r.excludeResting(seq, record.ScanRequest(kept.Packed))
	}
	r.table.Remove(seq)
}

// excludeResting is exclude for a packed request.
func (r *requests) excludeResting(seq uint64, q record.RestingRequest) {
	r.forgetting.Remove(q.ForgetU, seq)
	r.ids.Remove(string(q.ID), seq)
	r.claims -= q.Claims
	r.bytes -= q.Bytes
}

// forgetDue drops a bounded number of requests whose time has come. The bound affects no
// answer, because find checks the time itself.
func (r *requests) forgetDue(u int64, claims *liveClaims) {
	for range forgetTickMax {
		seq, due := r.forgetting.Due(u)
		if !due {
			return
		}
		r.forget(seq, claims)
	}
}
