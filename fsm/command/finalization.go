package command

// ClaimFinalization claims the finalization of the parent ID for ProcessorID, or extends
// its claim. It always succeeds as a command; Result.Parent says how it went.
type ClaimFinalization struct {
	ID          uint64
	ProcessorID string
	TimeoutMS   int64 // 1 s to 3,600 s
}

func (ClaimFinalization) kind() Kind { return KindClaimFinalization }

func (c ClaimFinalization) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// ExtendFinalization lets the claim of ProcessorID last TimeoutMS from now (0: the length
// it was claimed with). It never shortens the claim.
type ExtendFinalization struct {
	ID          uint64
	ProcessorID string
	TimeoutMS   int64
}

func (ExtendFinalization) kind() Kind { return KindExtendFinalization }

func (c ExtendFinalization) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// ReleaseFinalization gives back the claim of ProcessorID.
type ReleaseFinalization struct {
	ID          uint64
	ProcessorID string
}

func (ReleaseFinalization) kind() Kind { return KindReleaseFinalization }

func (c ReleaseFinalization) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// Finalize ends a parent whose steps have ended: as completed, or as failed if
// Failed. It needs no claim, but it is refused while another processor has one. Token 0
// means that none was sent.
type Finalize struct {
	ID          uint64
	ProcessorID string
	Token       uint64
	Failed      bool
	Result      []byte // JSON as given; nil = none
	Error       string // of Failed
}

func (Finalize) kind() Kind { return KindFinalize }

func (c Finalize) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// code reads or writes the fields of
//
//	message ClaimFinalization {
//	  uint64 id = 1;
//	  string processor_id = 2;
//	  int64 timeout_ms = 3;
//	}
func (c ClaimFinalization) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	f.Text(2, &c.ProcessorID)
	f.Int(3, &c.TimeoutMS)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message ExtendFinalization {
//	  uint64 id = 1;
//	  string processor_id = 2;
//	  int64 timeout_ms = 3;  // 0 the claim's own
//	}
func (c ExtendFinalization) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	f.Text(2, &c.ProcessorID)
	f.Int(3, &c.TimeoutMS)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message ReleaseFinalization {
//	  uint64 id = 1;
//	  string processor_id = 2;
//	}
func (c ReleaseFinalization) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	f.Text(2, &c.ProcessorID)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message Finalize {
//	  uint64 id = 1;
//	  string processor_id = 2;
//	  uint64 token = 3;   // 0 none was sent
//	  bool failed = 4;
//	  bytes result = 5;   // JSON as given
//	  string error = 6;
//	}
func (c Finalize) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	f.Text(2, &c.ProcessorID)
	f.ID(3, &c.Token)
	f.Bool(4, &c.Failed)
	f.Bytes(5, &c.Result)
	f.Text(6, &c.Error)
	return done(c, &f)
}
