package record

// Gone is the record of a task removed by retention or eviction, so that repeated
// calls still get their answer. It is saved under the task's id.
type Gone struct {
	// Key is the task's idempotency key, which stays taken as long as the record exists. It
	// is "" if the key was freed when the task ended.
	Key string
	// KeyOfType says that the key is taken only among the tasks of the type.
	KeyOfType bool
	Type      string // "" if it was removed by an older version
	Status    Status // completed, failed or cancelled
	// Token and Outcome are from the last claim, or zero. WorkerID had that claim, but is
	// "" if the task ended otherwise. A parent has no Outcome; its WorkerID and Token are
	// from the processor that ended it.
	WorkerID string
	Token    uint64
	Outcome  Outcome
	Same     uint64 // hash of type and parameters; 0 without a key
	Then     *Then
	ForgetU  int64 // when it is forgotten, by the lease clock
}

// RestingGone packs removed tasks into the bytes of their records, because they are hardly
// ever looked up.
type RestingGone struct{}

// Rests reports whether the record is small enough to be packed.
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
