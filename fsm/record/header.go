package record

// Stamp is the pair of clocks that an entry carries (docs/formats.md). Both are
// milliseconds; neither ever runs back in the state.
type Stamp struct {
	// U is the lease clock: milliseconds that the cluster has had a leader. It
	// starts at 0 with the cluster and stands still while there is no leader.
	U int64
	// T is the calendar: milliseconds since the Unix epoch.
	T int64
}

// Header is the part of the saved state that is not a record.
type Header struct {
	Index uint64 // of the last entry applied
	// Ahead is how far moments are ahead of indexes of the log: they jump where a
	// cluster begins and where a backup is restored, so that none is given out twice,
	// whatever the log's index is.
	Ahead uint64
	Stamp Stamp
	Level uint32 // replicated feature level
	// The next ones to give out, from 1. All are below 2^53.
	NextID      uint64
	NextToken   uint64
	NextRequest uint64 // sequence number of claim requests

	Chain uint64 // that of the entries applied, as package cluster makes it

	Defaults Defaults // the server's

	JoinTokens []*JoinToken // the oldest first, at most JoinTokensMax; neither slice nor tokens change in place

	PageSecret []byte // nil or PageSecretBytes, never changed in place
}

// Moment is what the newest entry is known by in the trail: it grows with each entry,
// also where a state was restored that had come to a higher index elsewhere.
func (h *Header) Moment() uint64 { return h.Index + h.Ahead }

// MoveOn moves moments on so that this one is not below least.
func (h *Header) MoveOn(least uint64) {
	if least > h.Moment() {
		h.Ahead = least - h.Index
	}
}

// Follows reports whether a state with this header may take the place of one with
// the header before: neither clock, nor what was given out, nor the level goes back.
func (h *Header) Follows(before *Header) bool {
	return h.Stamp.U >= before.Stamp.U && h.Stamp.T >= before.Stamp.T && h.Level >= before.Level &&
		h.NextID >= before.NextID && h.NextToken >= before.NextToken
}
