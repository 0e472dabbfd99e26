package codec

import "cmp"

// Limits bound a request. Zero fields mean the contract's values.
type Limits struct {
	BodyBytes  int // of a whole body; 0: 8 MiB
	ValueBytes int // of params, payload, result, result_payload each; 0: 1 MiB
	ErrorBytes int // where a fail's error is cut; 0: 16 KiB
	Depth      int // of nested objects and arrays, including the body itself; 0: 64
	Items      int // of tasks in a submit, a claim and a page, and of ops in a batch; 0: 1,000
}

// SetDefaults sets zero fields to the contract's values.
func (l *Limits) SetDefaults() {
	l.BodyBytes = cmp.Or(l.BodyBytes, 8<<20)
	l.ValueBytes = cmp.Or(l.ValueBytes, 1<<20)
	l.ErrorBytes = cmp.Or(l.ErrorBytes, 16<<10)
	l.Depth = cmp.Or(l.Depth, 64)
	l.Items = cmp.Or(l.Items, 1_000)
}

// Valid reports whether a server can work with the limits.
func (l *Limits) Valid() bool {
	return l.BodyBytes >= 1 && l.ValueBytes >= 1 && l.ErrorBytes >= 1 && l.Depth >= 2 && l.Items >= 1 && l.Items <= 1_000
}
