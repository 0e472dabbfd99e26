package command

// Forget forgets what is remembered of removed tasks and of claim requests before its
// time, a bounded number: those whose time would come first, until all that is
// remembered takes no more than Bytes by the machine's estimate. A claim request that
// has a claim which lives stays.
type Forget struct{ Bytes int64 }

func (Forget) kind() Kind { return KindForget }

func (Forget) about() About { return About{} }

// code goes through the fields of
//
//	message Forget {
//	  int64 bytes = 1;  // what is remembered of removed tasks and of claim requests may take
//	}
func (c Forget) code(f fields) (Command, []byte, error) {
	f.Int(1, &c.Bytes)
	return done(c, &f)
}
