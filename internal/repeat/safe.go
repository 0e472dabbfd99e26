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

// Safe reports whether it is safe to repeat a call that may have been carried out. marked
// means that it carries something by which the server recognizes a repeat: a submit the
// idempotency key of each task, a claim its claim request id, a settling call the claim
// token.
//
// Cancel, patch and set_type set a state, so doing them twice is the same as once. A
// repeated delete finds no task, and ids are never reused; but in a batch that would look
// like a refusal, so a batch uses BatchSafe. A retry is never safe: the task may have been
// claimed in between, and the repeat would take it from that worker.
//
// Calls of a finalization are recognized by their processor: a repeated claim is an extend,
// which gives the same token and never shortens, and a repeated finalize returns what was
// done. A try that is carried out late, after its repeat, may once more take, extend or
// release a claim of the same processor: a claim that its processor does not know of ends
// at its timeout, and if one is released too early, the processor learns of it by its
// token.
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

// BatchSafe is Safe for an op of a batch.
func (o Op) BatchSafe(marked bool) bool { return o != OpDelete && o.Safe(marked) }
