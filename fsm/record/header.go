package record

// Stamp is the pair of clocks in an entry (docs/formats.md). Both are in milliseconds, and
// neither ever runs back in the state.
type Stamp struct {
	// U is the lease clock: how long the cluster has had a leader. It starts at 0 with the
	// cluster and stands still while there is no leader.
	U int64
	// T is the calendar: milliseconds since the Unix epoch.
	T int64
}

// Header is the part of the saved state that is not a record.
type Header struct {
	Index uint64 // of the last entry applied
	// Ahead is the distance of moments from the log's indexes. It grows when a cluster
	// begins and when a backup is restored, so that no moment is used twice whatever the
	// log's index is.
	Ahead uint64
	Stamp Stamp
	Level uint32 // replicated feature level
	// The next numbers to assign, from 1. All are below 2^53.
	NextID      uint64
	NextToken   uint64
	NextRequest uint64 // sequence number of the next claim request

	Chain uint64 // checksum of the applied entries, from package cluster

	Defaults Defaults // for tasks whose type sets none

	JoinTokens []*JoinToken // oldest first, at most JoinTokensMax; slice and tokens are copy on write

	PageSecret []byte // nil or command.PageSecretBytes long, never changed in place
}

// Moment identifies the newest entry in the trail. It grows with each entry, even after
// restoring a state that had a higher index elsewhere.
func (h *Header) Moment() uint64 { return h.Index + h.Ahead }

// MoveOn raises the current moment to at least least.
func (h *Header) MoveOn(least uint64) {
	if least > h.Moment() {
		h.Ahead = least - h.Index
	}
}

// Follows reports whether a state with this header may replace one with the header before:
// no clock, counter or level goes back.
func (h *Header) Follows(before *Header) bool {
	return h.Stamp.U >= before.Stamp.U && h.Stamp.T >= before.Stamp.T && h.Level >= before.Level &&
		h.NextID >= before.NextID && h.NextToken >= before.NextToken
}

// FeatureLevel is the highest feature level that this binary knows. A new command type, or a
// field that changes what Apply does, raises it. It is a variable only because tests
// add a level; nothing in the product sets it.
var FeatureLevel uint32 = 1
