package command

// Hold identifies a claim in the commands of its worker. Token 0 means that the worker sent none;
// then only WorkerID is checked.
type Hold struct {
	ID       uint64
	WorkerID string
	Token    uint64
}

// about is shared by the commands of a claim's worker.
func (h Hold) about() About {
	return About{Known: true, ID: h.ID, WorkerID: h.WorkerID, Changes: 1}
}

// Fail ends the attempt: the task becomes pending if it has attempts left, otherwise
// failed.
type Fail struct {
	Hold
	Error string // at most 16 KiB; the caller cuts it
	// RetryInMS replaces the backoff if RetryIn is set.
	RetryIn   bool
	RetryInMS int64
	Permanent bool // fail the task even if attempts are left
}

func (Fail) kind() Kind { return KindFail }

// Extend moves the end of the lease to LeaseMS from now (0: the claim's own length), but
// never to an earlier time unless it is Exact.
type Extend struct {
	Hold
	LeaseMS  int64
	Progress []byte // JSON as given; nil keeps the last one
	Exact    bool
}

func (Extend) kind() Kind { return KindExtend }

// Release gives the task back without counting the attempt. It cannot be claimed for
// DelayMS.
type Release struct {
	Hold
	DelayMS int64
	// Answer, if not 0, is the LeaseSeq of the answer that could not be sent: the claim
	// stays if a later answer reported it. It needs a token.
	Answer uint32
}

// FirstAnswer is the LeaseSeq of a new claim. Only a claim with it is released for an
// unsent answer, because a worker that is told of a claim again may have received an
// earlier answer.
const FirstAnswer = 1

func (Release) kind() Kind { return KindRelease }

// fields reads or writes the fields that all commands of a claim's worker begin with.
func (h *Hold) fields(f *fields) {
	f.ID(1, &h.ID)
	f.NameAfter(2, &h.WorkerID, &f.before.worker)
	f.ID(3, &h.Token)
}

// code reads or writes the fields of
//
//	message Fail {
//	  uint64 id = 1;
//	  string worker_id = 2;
//	  uint64 token = 3;
//	  string error = 4;
//	  bool retry_in = 5;
//	  int64 retry_in_ms = 6;  // in place of the backoff
//	  bool permanent = 7;
//	}
func (c Fail) code(f fields) (Command, fields) {
	c.fields(&f)
	f.Text(4, &c.Error)
	f.Bool(5, &c.RetryIn)
	f.Int(6, &c.RetryInMS)
	f.Bool(7, &c.Permanent)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message Extend {
//	  uint64 id = 1;
//	  string worker_id = 2;
//	  uint64 token = 3;
//	  int64 lease_ms = 4;  // 0 the claim's own
//	  bytes progress = 5;  // JSON as given
//	  bool exact = 6;      // the lease may end earlier than before
//	}
func (c Extend) code(f fields) (Command, fields) {
	c.fields(&f)
	f.Int(4, &c.LeaseMS)
	f.Bytes(5, &c.Progress)
	f.Bool(6, &c.Exact)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message Release {
//	  uint64 id = 1;
//	  string worker_id = 2;
//	  uint64 token = 3;
//	  int64 delay_ms = 4;
//	  uint32 answer = 5;  // the claim stays if there was another answer since
//	}
func (c Release) code(f fields) (Command, fields) {
	c.fields(&f)
	f.Int(4, &c.DelayMS)
	f.Uint32(5, &c.Answer)
	return done(c, &f)
}
