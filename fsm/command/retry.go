package command

// Retry makes a failed, cancelled or claimed task pending. AddAttempts is added to a
// limited MaxAttempts first. Token 0 means none was sent. For a parent it retries all steps
// that failed or were cancelled, or none of them.
type Retry struct {
	ID          uint64
	Token       uint64
	AddAttempts int32
}

func (Retry) kind() Kind { return KindRetry }

func (c Retry) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// Delete removes an ended task and frees its key. A parent is removed with its steps.
type Delete struct{ ID uint64 }

func (Delete) kind() Kind { return KindDelete }

func (c Delete) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// code goes through the fields of
//
//	message Retry {
//	  uint64 id = 1;
//	  uint64 token = 2;
//	  int32 add_attempts = 3;
//	}
func (c Retry) code(f fields) (Command, []byte, error) {
	f.ID(1, &c.ID)
	f.ID(2, &c.Token)
	f.Int32(3, &c.AddAttempts)
	return done(c, &f)
}

// code goes through the fields of
//
//	message Delete {
//	  uint64 id = 1;
//	}
func (c Delete) code(f fields) (Command, []byte, error) {
	f.ID(1, &c.ID)
	return done(c, &f)
}
