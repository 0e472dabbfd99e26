package command

// Evict removes a bounded number of ended tasks until the rest take no more than Bytes by
// the machine's estimate: the oldest completed and cancelled ones first, then the oldest
// failed ones.
type Evict struct{ Bytes int64 }

func (Evict) kind() Kind { return KindEvict }

func (Evict) about() About { return About{} }

// code goes through the fields of
//
//	message Evict {
//	  int64 bytes = 1;  // what ended tasks may take
//	}
func (c Evict) code(f fields) (Command, []byte, error) {
	f.Int(1, &c.Bytes)
	return done(c, &f)
}
