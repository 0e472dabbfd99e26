package record

// Request is a claim request that is remembered, so that its repeat gets the
// first answer. It is saved under its sequence number.
type Request struct {
	ID       string // claim_request_id
	WorkerID string
	// Choice is a hash of what chose the tasks: kind of command, task id or
	// types, order and limit.
	Choice uint64
	Claims []ClaimRef // in the order of the answer, never changed
	// Live counts the claims that have not ended.
	Live int32
	// ForgetU is when it is forgotten by the lease clock; 0 while Live > 0.
	ForgetU int64
}

// RestingRequests is how claim requests are kept whose claims have all ended: as the
// bytes of their records, for hardly ever anybody asks for one.
type RestingRequests struct{}

// Rests reports whether all claims of it have ended, and it is not too large.
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

// BytesOfLiveRequest is BytesOfRequest of one that has a claim which lives.
func BytesOfLiveRequest(r *Request) int64 {
	return int64(requestBytes + len(r.ID) + len(r.WorkerID) + claimBytes*len(r.Claims))
}
