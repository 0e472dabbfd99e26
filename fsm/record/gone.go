package record

import "math"

// Gone is the record of a task removed by retention or eviction, so that repeated
// calls still get their answer. It is saved under the task's id.
type Gone struct {
	// Key is the task's idempotency key, which stays taken as long as the record exists. It
	// is "" if the key was freed when the task ended.
	Key      string
	Type     string
	KeyUntil int64 // the key is taken until then, by T; 0 = as long as the record exists
	// KeyOfType says that the key is taken only among the tasks of the type.
	KeyOfType bool
	Status    Status // completed, failed or cancelled
	// Token and Outcome are from the last claim, or zero. WorkerID had that claim, but is
	// "" if the task ended otherwise. A parent has no Outcome; its WorkerID and Token are
	// from the processor that ended it.
	Outcome  Outcome
	WorkerID string
	Token    uint64
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

// Task returns a task with what is known of the removed one.
func (g *Gone) Task(id uint64) *Task {
	t := &Task{ID: id, Type: g.Type, Key: g.Key, Status: g.Status, Token: g.Token, Then: g.Then}
	if g.Status != StatusCancelled {
		t.WorkerID = g.WorkerID
	}
	return t
}

// PackedGone has what forgetting a packed record needs of it.
type PackedGone struct {
	Key, Type []byte // these share memory with the record
	KeyOfType bool
	Bytes     int64 // BytesOfGone
	ForgetU   int64
}

// ScanGone reads a packed record without unpacking it.
func ScanGone(b []byte) (g PackedGone) {
	worker, then := 0, 0
	r := Scanner{Rest: b}
	for r.NextUntil(goneKeyOfType) {
		switch r.Num {
		case goneKey:
			g.Key = r.Text
		case goneWorker:
			worker = len(r.Text)
		case goneForgetU:
			g.ForgetU = int64(r.value)
		case goneThen:
			then = thenBytes
			for each := (Scanner{Rest: r.Text}); each.NextUntil(math.MaxInt32); {
				then += claimBytes
			}
		case goneType:
			g.Type = r.Text
		case goneKeyOfType:
			g.KeyOfType = true
		}
	}
	g.Bytes = bytesOfGone(len(g.Key), len(g.Type), worker, then)
	return g
}

// BytesOfGone estimates the memory that the record takes.
func BytesOfGone(g *Gone) int64 {
	return bytesOfGone(len(g.Key), len(g.Type), len(g.WorkerID), bytesOfThen(g.Then))
}

func bytesOfGone(key, taskType, worker, then int) int64 {
	n := goneBytes + taskType + worker + then
	if key > 0 {
		n += keyBytes + key
	}
	return int64(n)
}
