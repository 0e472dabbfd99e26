package record

import (
	"cmp"
	"slices"
)

// Request is a remembered claim request, so that a repeat of one of its calls gets the first
// answer. It is saved under its sequence number.
type Request struct {
	ID     string         // claim_request_id
	Claims []RequestClaim // by ascending Place, in each in the order of the answer; never changed in place
	// Live counts the claims that have not ended.
	Live int32
	// ForgetU is when it is forgotten by the lease clock; 0 while Live > 0.
	ForgetU int64
}

// RequestClaim is a claim that a call of a request got.
type RequestClaim struct {
	ClaimRef
	// Asked is a hash of the call's worker and of what decided which tasks it claimed: the
	// kind of command, the task id or types, order and limit. It is never 0.
	Asked uint64
	Place uint32 // of the call in the request; 0 if it was alone
}

// Call returns the claims of the call at the place, and where they are or would be.
func (r *Request) Call(place uint32) (claims []RequestClaim, at int) {
	from := 0
	if n := len(r.Claims); n > 0 && r.Claims[n-1].Place < place { // the usual case: calls come in order
		from = n
	} else {
		from, _ = slices.BinarySearchFunc(r.Claims, place, func(c RequestClaim, place uint32) int { return cmp.Compare(c.Place, place) })
	}
	to := from
	for to < len(r.Claims) && r.Claims[to].Place == place {
		to++
	}
	return r.Claims[from:to], from
}

// RestingRequests packs claim requests without live claims into the bytes of their records,
// because they are hardly ever looked up.
type RestingRequests struct{}

// Rests reports whether all its claims have ended and it is small enough to be packed.
func (RestingRequests) Rests(r *Request) bool {
	return r.Live == 0 && len(r.ID)+requestClaimBytes*len(r.Claims) <= restingMax
}

// Pack appends the record.
func (RestingRequests) Pack(b []byte, seq uint64, r *Request) []byte {
	return AppendRequest(b, seq, r)
}

// Unpack reads the record.
func (RestingRequests) Unpack(b []byte, _ bool) *Request {
	f := From(b, nil)
	_, q := ReadRequest(&f)
	mustUnpack(KindRequest, f.Err)
	return q
}

// RestingRequest has what forgetting a packed request needs of it.
type RestingRequest struct {
	ID      []byte // shares memory with the record
	Claims  int
	Bytes   int64 // BytesOfRequest
	ForgetU int64
}

// ScanRequest reads a packed request without unpacking it.
func ScanRequest(b []byte) (q RestingRequest) {
	alike := 0 // claims whose Asked equals that of the one before
	r := Scanner{Rest: b}
	for r.NextUntil(fieldForgetU) {
		switch r.Num {
		case fieldRequestID:
			q.ID = r.Text
		case fieldClaims:
			q.Claims++
			claim := Scanner{Rest: r.Text}
			for claim.NextUntil(fieldAsked) {
			}
			if q.Claims > 1 && claim.Num != fieldAsked {
				alike++
			}
		case fieldForgetU:
			q.ForgetU = int64(r.value)
		}
	}
	q.Bytes = bytesOfResting(len(q.ID), q.Claims, q.Claims-alike)
	return q
}

// BytesOfRequest estimates the memory that a claim request takes.
func BytesOfRequest(r *Request) int64 {
	if r.Live > 0 {
		return BytesOfLiveRequest(r)
	}
	asked := 0
	for i := range r.Claims {
		if i == 0 || r.Claims[i].Asked != r.Claims[i-1].Asked {
			asked++
		}
	}
	return bytesOfResting(len(r.ID), len(r.Claims), asked)
}

// bytesOfResting is BytesOfRequest for a request without a live claim. asked is the number of
// claims whose Asked differs from that of the one before.
func bytesOfResting(id, claims, asked int) int64 {
	return int64(restingRequestBytes + id + restingClaimBytes*claims + restingAskedBytes*asked)
}

// BytesOfLiveRequest is BytesOfRequest for a request with a live claim.
func BytesOfLiveRequest(r *Request) int64 {
	return int64(requestBytes + len(r.ID) + requestClaimBytes*len(r.Claims))
}
