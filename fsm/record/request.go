package record

// Request is a remembered claim request, so that a repeat gets the first answer. It is
// saved under its sequence number.
type Request struct {
	ID       string // claim_request_id
	WorkerID string
	// Choice is a hash of what decided which tasks were claimed: the kind of command, the
	// task id or types, order and limit.
	Choice uint64
	Claims []ClaimRef // in the order of the answer; never changed
	// Live counts the claims that have not ended.
	Live int32
	// ForgetU is when it is forgotten by the lease clock; 0 while Live > 0.
	ForgetU int64
}

// RestingRequests packs claim requests without live claims into the bytes of their records,
// because they are hardly ever looked up.
type RestingRequests struct{}

// Rests reports whether all its claims have ended and it is small enough to be packed.
func (RestingRequests) Rests(r *Request) bool {
	return r.Live == 0 && len(r.ID)+len(r.WorkerID)+claimBytes*len(r.Claims) <= restingMax
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

// BytesOfRequest estimates the memory that a claim request takes.
func BytesOfRequest(r *Request) int64 {
	if r.Live > 0 {
		return BytesOfLiveRequest(r)
	}
	return int64(restingRequestBytes + len(r.ID) + len(r.WorkerID) + restingClaimBytes*len(r.Claims))
}

// BytesOfLiveRequest is BytesOfRequest for a request with a live claim.
func BytesOfLiveRequest(r *Request) int64 {
	return int64(requestBytes + len(r.ID) + len(r.WorkerID) + claimBytes*len(r.Claims))
}
