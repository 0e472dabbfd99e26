package command

import (
	"fmt"

	"github.com/claimq/claimq/fsm/record"
)

// Batch applies Ops in order, in one step; if Atomic, all of them or none. An op is a Submit of
// one task, ClaimNext, Complete, Fail, Extend, Release, Retry, Cancel or Delete. Result.Results
// has one element per op; if an atomic batch was refused, Result.Code and FailedOp say why. In an
// atomic batch, a claim that finds nothing is a refusal. All ops share the bound of one answer:
// once it is full, claims take nothing more and other tasks come without their data.
type Batch struct {
	Atomic bool
	// RequestID is the claim_request_id of those claims among the ops that have none of their own.
	// Each of them is the call at its op's index in this request. "" = none.
	RequestID string
	Ops       []Command // 1 to 1,000
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
	switch c := c.(type) {
	case Submit:
		return len(c.Tasks) == 1
	case *Submit:
		return len(c.Tasks) == 1
	}
	return c.kind().isOp()
}

// code writes an op as its kind and its body. It panics if a batch must not hold the op, which
// would make an entry that no node can read.
//
//	message Batch {
//	  bool atomic = 1;
//	  repeated bytes ops = 2;  // each the type of its command, one byte, and then its body
//	  string request_id = 3;   // of the claims without one
//	}
func (c Batch) code(f fields) (Command, fields) {
	f.Bool(1, &c.Atomic)
	for _, op := range c.Ops { // none while reading
		if !IsOp(op) {
			panic(fmt.Sprintf("command: %T is no op of a batch", op))
		}
		b, start := f.BeginElement(fieldOps)
		f.Out = record.EndLength(appendBody(append(b, byte(op.kind())), op, &f.before), start)
	}
	if f.Num == fieldOps {
		c.Ops = make([]Command, 0, f.Run())
	}
	for f.Num == fieldOps {
		op, err := decodeOp(f.Element(), nil, &f.before)
		f.Refuse(err)
		c.Ops = append(c.Ops, op)
	}
	f.Text(3, &c.RequestID)
	return done(c, &f)
}

const fieldOps = 2

// Len returns the number of ops.
func (c Batch) Len() int { return len(c.Ops) }

// Each calls do with each op in order, until it returns an error, which Each returns.
func (c Batch) Each(do func(i int, op Command) error) error {
	for i, op := range c.Ops {
		if err := do(i, op); err != nil {
			return err
		}
	}
	return nil
}

// PackedBatch is a Batch whose ops are still encoded. Its Ops are not set; Each decodes them one
// by one into the same memory.
type PackedBatch struct {
	Batch
	count   int
	ops     record.Fields // at the first op; shares memory with the entry
	scratch *Scratch
}

// read reads the batch without decoding its ops.
func (c *PackedBatch) read(f *record.Fields, s *Scratch) error {
	f.Bool(1, &c.Atomic)
	c.ops, c.scratch = *f, s
	for f.Num == fieldOps {
		f.Element()
		c.count++
	}
	f.Text(3, &c.RequestID)
	return f.End()
}

// Len returns the number of ops.
func (c *PackedBatch) Len() int { return c.count }

// Each is Batch.Each. An op is valid until do returns. It also returns the error of an op
// that cannot be decoded.
func (c *PackedBatch) Each(do func(i int, op Command) error) error {
	f, before := c.ops, names{}
	for i := range c.count {
		op, err := decodeOp(f.Element(), c.scratch, &before)
		if err != nil {
			return fmt.Errorf("%s: %w", KindBatch, err)
		}
		err = do(i, op)
		c.scratch.resetOp()
		if err != nil {
			return err
		}
	}
	return nil
}

// decodeOp decodes one op of a batch, into s unless that is nil: its kind, then its body. A
// batch cannot hold a batch, which bounds the nesting. before is as in appendBody.
func decodeOp(b []byte, s *Scratch, before *names) (Command, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: an op without a kind", record.ErrCorrupt)
	}
	k := Kind(b[0])
	if !k.isOp() {
		return nil, fmt.Errorf("%w: %s in a batch", record.ErrUnknown, k)
	}
	c, err := decodeBody(k, b[1:], s, before)
	switch {
	case err != nil:
		return nil, err
	case !IsOp(c):
		return nil, fmt.Errorf("%w: %s of not one task in a batch", record.ErrCorrupt, k)
	}
	return c, nil
}
