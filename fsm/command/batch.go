package command

import (
	"fmt"

	"github.com/claimq/claimq/fsm/wire"
)

// Batch applies Ops in order, in one step; if Atomic, all of them or none. An op is a
// Submit of one task, ClaimNext, Complete, Fail, Extend, Release, Retry, Cancel or Delete.
// Result.Results has one element per op; if an atomic batch was refused, Result.Code and
// FailedOp say why. In an atomic batch, a claim that finds nothing is a refusal. All ops
// share the bound of one answer: once it is full, claims take nothing and other tasks come
// without their data.
type Batch struct {
	Atomic bool
	Ops    []Command // 1 to 1,000
}

func (Batch) kind() Kind { return KindBatch }

func (c Batch) about() About {
	about := About{Known: true, Ops: c.Ops}
	for _, op := range c.Ops {
		if complete, ok := op.(Complete); ok { // most ops are Complete; skip the rest of its About
			about.Changes += complete.changes()
			continue
		}
		about.Changes += op.about().Changes
	}
	return about
}

func (c Batch) needs() (level uint32) {
	for _, op := range c.Ops {
		level = max(level, LevelOf(op))
	}
	return level
}

// IsOp reports whether a batch may hold c. A Submit must have exactly one task.
func IsOp(c Command) bool {
	if s, ok := c.(Submit); ok {
		return len(s.Tasks) == 1
	}
	return c.kind().isOp()
}

// code writes an op as its kind and its body. It must be one that a
// batch may hold: another would make an entry that no node can read.
//
//	message Batch {
//	  bool atomic = 1;
//	  repeated bytes ops = 2;  // each the type of its command, one byte, and then its body
//	}
func (c Batch) code(f fields) (Command, []byte, error) {
	f.Bool(1, &c.Atomic)
	for _, op := range c.Ops { // none while reading
		if !IsOp(op) {
			panic(fmt.Sprintf("command: %T is no op of a batch", op))
		}
		b, start := f.BeginElement(2)
		f.Out = wire.EndLength(appendBody(append(b, byte(op.kind())), op), start)
	}
	if f.Num == 2 {
		c.Ops = make([]Command, 0, f.Run())
	}
	for f.Num == 2 {
		op, err := decodeOp(f.Element())
		f.Refuse(err)
		c.Ops = append(c.Ops, op)
	}
	return done(c, &f)
}

// decodeOp decodes one op of a batch: its kind, then its body. A batch cannot hold a batch,
// which bounds the nesting.
func decodeOp(b []byte) (Command, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: an op without a kind", wire.ErrCorrupt)
	}
	k := Kind(b[0])
	if !k.isOp() {
		return nil, fmt.Errorf("%w: %s in a batch", wire.ErrUnknown, k)
	}
	c, err := decodeBody(k, b[1:], nil)
	switch {
	case err != nil:
		return nil, err
	case !IsOp(c):
		return nil, fmt.Errorf("%w: %s of not one task in a batch", wire.ErrCorrupt, k)
	}
	return c, nil
}
