package record

// Gone is what is remembered of a task that retention or eviction removed, so
// that repeats still get their answer. It is saved under the task's id.
type Gone struct {
	// Key is the task's idempotency key, which stays taken for as long; "" if it
	// was free again when the task ended.
	Key string
	// KeyOfType says that it is taken among the tasks of the type alone.
	KeyOfType bool
	Type      string // "" of one that was removed before this was remembered
	Status    Status // completed, failed or cancelled
	// Token and Outcome are of the last claim, zero if there was none. WorkerID
	// is who had it, "" if the task did not end with it. Of a parent, which has no
	// Outcome, WorkerID and Token are of the processor that ended it.
	WorkerID string
	Token    uint64
	Outcome  Outcome
	Same     uint64 // hash of type and parameters; 0 without a key
	Then     *Then
	ForgetU  int64 // when it is forgotten, by the lease clock
}

// RestingGone is how all that is remembered of removed tasks is kept: as the bytes of
// their records. Hardly ever anybody asks for one.
type RestingGone struct{}

// Rests reports whether it is not too large.
func (RestingGone) Rests(g *Gone) bool {
	return len(g.Key)+len(g.Type)+len(g.WorkerID)+bytesOfThen(g.Then) <= restingMax
}

// Pack appends the record.
func (RestingGone) Pack(b []byte, id uint64, g *Gone) []byte { return AppendGone(b, id, g) }

// Unpack reads the record.
func (RestingGone) Unpack(b []byte, _ bool) *Gone {
	f := From(b, nil)
	_, g := ReadGone(&f)
	mustUnpack(KindGone, f.Err)
	return g
}

// Task returns what is known of the removed task.
func (g *Gone) Task(id uint64) *Task {
	t := &Task{ID: id, Type: g.Type, Key: g.Key, Status: g.Status, Token: g.Token, Then: g.Then}
	if g.Status != StatusCancelled {
		t.WorkerID = g.WorkerID
	}
	return t
}

// BytesOfGone estimates the memory that the record takes.
func BytesOfGone(g *Gone) int64 {
	n := goneBytes + len(g.Type) + len(g.WorkerID) + bytesOfThen(g.Then)
	if g.Key != "" {
		n += keyBytes + len(g.Key)
	}
	return int64(n)
}
