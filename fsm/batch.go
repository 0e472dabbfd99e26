package fsm

// isOp reports whether a batch may hold commands of the kind.
func (k kind) isOp() bool {
	switch k {
	case kindSubmit, kindClaimNext, kindComplete, kindFail, kindExtend, kindRelease, kindRetry, kindCancel, kindDelete:
		return true
	}
	return false
}

// isOp reports whether a batch may hold c: a Submit only of one task.
func isOp(c Command) bool {
	if s, ok := c.(Submit); ok {
		return len(s.Tasks) == 1
	}
	return c.kind().isOp()
}
