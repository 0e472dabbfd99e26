package command

// Forget drops remembered claim requests and removed tasks before their time until they
// take no more than Bytes by the machine's estimate. It drops a bounded number, those due
// first. A request with a live claim stays.
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
