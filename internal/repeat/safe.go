package repeat

// Op is a kind of call that changes something, by its name in a batch.
type Op string

// The kinds of calls.
const (
	OpSubmit   Op = "submit"
	OpClaim    Op = "claim"
	OpComplete Op = "complete"
	OpFail     Op = "fail"
	OpExtend   Op = "extend"
	OpRelease  Op = "release"
	OpRetry    Op = "retry"
	OpCancel   Op = "cancel"
	OpDelete   Op = "delete"
	OpPatch    Op = "patch"
	OpSetType  Op = "set_type"

	// These have no name in a batch.
	OpFinalizationClaim   Op = "finalization_claim"
	OpFinalizationExtend  Op = "finalization_extend"
	OpFinalizationRelease Op = "finalization_release"
	OpFinalize            Op = "finalize"
)

// Safe reports whether a call may be made again that may have been done. marked
// says that it carries what the server recognizes a repeat by: a submit the
// idempotency key of each of its tasks, a claim its claim request id, a
// settling call the claim token.
//
// Cancel, patch and set_type ask for a state; asking twice is the same. A
// repeated delete finds no task, and ids are never used again; but within a
// batch that would look like a refusal, so a batch asks BatchSafe. A retry is
// never safe: the task may have been claimed in between, and the repeat would
// take it from that worker.
//
// The calls of a finalization are known by their processor: its claim again is
// an extend, which gives the same token and never shortens; finalizing again
// tells what was done. A try that is done late, after its repeat, may take,
// lengthen or let go of a claim of the same processor once more: a claim that
// nobody knows of ends at its timeout, and one that was let go of too early is
// told by its token.
func (o Op) Safe(marked bool) bool {
	switch o {
	case OpSubmit, OpClaim, OpComplete, OpFail, OpExtend, OpRelease:
		return marked
	case OpCancel, OpDelete, OpPatch, OpSetType, OpFinalizationClaim, OpFinalizationExtend, OpFinalizationRelease, OpFinalize:
		return true
	case OpRetry:
	}
	return false
}

// BatchSafe is Safe of an op of a batch.
func (o Op) BatchSafe(marked bool) bool { return o != OpDelete && o.Safe(marked) }
