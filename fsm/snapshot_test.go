package fsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// rawChunk is a chunk as the tests take snapshots apart and put them together.
type rawChunk struct {
	kind    record.Kind
	records [][]byte
}

// splitSnapshot takes a snapshot apart without judging it. Parts that make
// no sense are left out.
func splitSnapshot(saved []byte) []rawChunk {
	var chunks []rawChunk
	b := saved[min(len(saved), len(snapshot.Magic)+1):]
	for len(b) >= snapshot.ChunkHead {
		c := rawChunk{kind: record.Kind(b[snapshot.ChunkHead-1])}
		size := min(int(binary.LittleEndian.Uint32(b)), len(b)-snapshot.ChunkHead)
		payload := b[snapshot.ChunkHead : snapshot.ChunkHead+size]
		b = b[min(len(b), snapshot.ChunkHead+size+snapshot.ChunkTail):]
		for len(payload) > 0 {
			packed, n := protowire.ConsumeBytes(payload)
			if n < 0 {
				break
			}
			c.records, payload = append(c.records, packed), payload[n:]
		}
		chunks = append(chunks, c)
	}
	return chunks
}

// joinSnapshot is the inverse of splitSnapshot, with the right checksums.
func joinSnapshot(chunks []rawChunk) []byte {
	b := append([]byte(snapshot.Magic), record.Format)
	for _, c := range chunks {
		start := len(b)
		b = append(b, 0, 0, 0, 0, byte(c.kind))
		for _, packed := range c.records {
			b = protowire.AppendBytes(b, packed)
		}
		binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-snapshot.ChunkHead))
		b = binary.LittleEndian.AppendUint32(b, snapshot.ChunkSum(b[start:]))
	}
	return b
}

// seal makes the counts and the hash of a snapshot right, so that a test of
// what is in it is not a test of them.
func seal(chunks []rawChunk) []rawChunk {
	var n record.Counts
	var hash snapshot.StateHash
	for _, c := range chunks {
		switch c.kind {
		case record.KindTask:
			n.Tasks += uint64(len(c.records))
		case record.KindRequest:
			n.Requests += uint64(len(c.records))
		case record.KindNode:
			n.Nodes += uint64(len(c.records))
		case record.KindType:
			n.Types += uint64(len(c.records))
		case record.KindGone:
			n.Gone += uint64(len(c.records))
		case record.KindTrail:
			n.Trail += uint64(len(c.records))
		case record.KindSchedule:
			n.Schedules += uint64(len(c.records))
		case record.KindTurn:
			n.Turns += uint64(len(c.records))
		case record.KindShare:
			n.Shares += uint64(len(c.records))
		case record.KindHistory:
			n.Histories += uint64(len(c.records))
		}
	}
	for i, c := range chunks {
		for j, packed := range c.records {
			r := record.From(packed, nil)
			var of event.Header
			switch h, _ := record.ReadHeader(&r, &of); {
			case c.kind == record.KindHeader && r.Err == nil:
				chunks[i].records[j] = record.AppendHeader(nil, &h, &of, n)
			case c.kind == record.KindEnd:
				chunks[i].records[j] = record.AppendEnd(nil, n, hash.Sum())
			}
			hash.Add(c.kind, chunks[i].records[j])
		}
	}
	return chunks
}

// smallMachine returns a machine with a little of everything.
func smallMachine(t testing.TB) *Machine {
	t.Helper()
	m := New()
	m.trail.ChunkBytes = 2 * event.EventRoom // so that there are several
	applyLog(t, m, goldenLog())
	m.SetChain(goldenChain)
	return m
}

// checkRead holds ReadSnapshot to its promises for any bytes.
func checkRead(t *testing.T, saved []byte) {
	t.Helper()
	m, err := ReadSnapshot(bytes.NewReader(saved))
	if err != nil {
		if m != nil || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownCommand) {
			t.Fatalf("machine %v, error %v; want none, and ErrCorrupt or ErrUnknownCommand", m, err)
		}
		return
	}
	again := snapshotOf(t, m)
	m2, err := ReadSnapshot(bytes.NewReader(again))
	if err != nil {
		t.Fatalf("what was read and written cannot be read: %v", err)
	}
	if !bytes.Equal(snapshotOf(t, m2), again) || hashOf(m) != hashOf(m2) {
		t.Fatal("what was read and written differs when it is read again")
	}
}

func TestReadSnapshot_EveryCorruptByteIsFound(t *testing.T) {
	t.Parallel()
	saved := snapshotOf(t, smallMachine(t))
	for i := range saved {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(saved)
			bad[i] ^= flip
			m, err := ReadSnapshot(bytes.NewReader(bad))
			if m != nil || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownCommand) && !errors.Is(err, ErrDevelopment) {
				t.Fatalf("byte %d of %d, bits %#x flipped: machine %v, error %v", i, len(saved), flip, m != nil, err)
			}
		}
	}
}

// Also what would pass the checksums, because it was wrong when they were made.
func TestReadSnapshot_EveryCorruptByteOfARecordIsFound(t *testing.T) {
	t.Parallel()
	chunks := splitSnapshot(snapshotOf(t, smallMachine(t)))
	for _, c := range chunks {
		for _, packed := range c.records {
			for i := range packed {
				packed[i] ^= 1
				if m, err := ReadSnapshot(bytes.NewReader(joinSnapshot(chunks))); m != nil || err == nil {
					t.Fatalf("byte %d of a %v is wrong: machine %v, error %v", i, c.kind, m != nil, err)
				}
				packed[i] ^= 1
			}
		}
	}
}

func TestReadSnapshot_EveryTruncationIsFound(t *testing.T) {
	t.Parallel()
	saved := snapshotOf(t, smallMachine(t))
	for n := range saved {
		if m, err := ReadSnapshot(bytes.NewReader(saved[:n])); m != nil || !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: machine %v, error %v; want ErrCorrupt", n, len(saved), m != nil, err)
		}
	}
	if _, err := ReadSnapshot(bytes.NewReader(append(saved, 0))); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a byte too many: error %v, want ErrCorrupt", err)
	}
}

func TestReadSnapshot_Refuses(t *testing.T) {
	t.Parallel()
	task := func(change func(*record.Task)) []byte {
		v := record.Task{ID: 1, Type: "mail", Status: record.StatusPending}
		change(&v)
		return record.AppendTask(nil, &v)
	}
	same := func(*record.Task) {}
	h := record.Header{Index: 1, NextID: 10, NextToken: 10, NextRequest: 10}
	one := func(kind record.Kind, records ...[]byte) rawChunk { return rawChunk{kind, records} }
	head := func() rawChunk {
		return one(record.KindHeader, record.AppendHeader(nil, &h, &event.Header{}, record.Counts{}))
	}
	headOf := func(h record.Header) rawChunk {
		return one(record.KindHeader, record.AppendHeader(nil, &h, &event.Header{}, record.Counts{}))
	}
	end := func() rawChunk { return one(record.KindEnd, nil) }
	node := func(uuid string) []byte { return record.AppendNode(nil, record.NodeRecord{UUID: uuid}) }
	tasks := func(records ...[]byte) []rawChunk { return []rawChunk{head(), one(record.KindTask, records...), end()} }
	typ := func(name string) []byte { return record.AppendType(nil, &record.TaskType{Name: name}) }
	removed := func(id, token uint64, status record.Status) []byte {
		return record.AppendGone(nil, id, &record.Gone{Token: token, Status: status})
	}
	schedule := func(name string) []byte {
		return record.AppendSchedule(nil, &record.ScheduleView{Schedule: record.Schedule{Name: name}, Version: 1})
	}
	fair := one(record.KindType, record.AppendType(nil, &record.TaskType{Name: "mail", Settings: record.TypeSettings{Fair: true}}))
	turns := func(numbers ...uint64) rawChunk {
		c := one(record.KindTurn)
		for _, n := range numbers {
			c.records = append(c.records, record.AppendTurn(nil, n, &record.Turn{Type: "mail", Value: 1}))
		}
		return c
	}
	turn := func(t record.Turn) []rawChunk {
		t.Type = "mail"
		return []rawChunk{head(), one(record.KindTask, task(same)), fair, one(record.KindTurn, record.AppendTurn(nil, 1, &t)), end()}
	}
	paused := func(number uint64, key string) []byte {
		return record.AppendShare(nil, number, &record.Share{Type: "mail", Key: key, Settings: record.ShareSettings{Paused: true}})
	}
	history := func(name string, open, since int64, minutes ...int64) []byte {
		h := record.History{Type: name, Since: since, Open: record.Minute{At: open}}
		for _, at := range minutes {
			h.Minutes = append(h.Minutes, record.Minute{At: at})
		}
		return record.AppendHistory(nil, &h)
	}
	request := func(seq uint64) []byte { // each with its own claim, at one place of one id
		claim := record.RequestClaim{ClaimRef: record.ClaimRef{TaskID: 1, Token: seq}, Asked: 1, Place: 7}
		return record.AppendRequest(nil, seq, &record.Request{ID: "a", ForgetU: 5, Claims: []record.RequestClaim{claim}})
	}
	with := func(kind record.Kind, records ...[]byte) []rawChunk {
		return []rawChunk{head(), one(record.KindTask, task(same)), one(kind, records...), end()}
	}
	tests := []struct {
		name   string
		chunks []rawChunk
		want   error
		names  string
	}{
		{"turns out of order", []rawChunk{head(), one(record.KindTask, task(same)), fair, turns(2, 1), end()}, ErrCorrupt, "turn 1 behind 2"},
		{"a turn without a number", []rawChunk{head(), one(record.KindTask, task(same)), fair, turns(0), end()}, ErrCorrupt, "turn 0 behind 0"},
		{"two turns of a share", []rawChunk{head(), one(record.KindTask, task(same)), fair, turns(1, 2), end()}, ErrCorrupt, "two tags"},
		{"a turn of a share without tasks", turn(record.Turn{ShareKey: "ann", Value: 1}), ErrCorrupt, "no claimable task"},
		{"a turn of a priority without tasks", turn(record.Turn{Priority: 1, Value: 1}), ErrCorrupt, "no claimable task"},
		{"a tag with its first value", turn(record.Turn{Value: 10_000_000}), ErrCorrupt, "first value"},
		{"a tag too far behind its clock", turn(record.Turn{Value: 10_000_001}), ErrCorrupt, "within a turn"},
		{"a tag before its clock", turn(record.Turn{Value: math.MaxUint64}), ErrCorrupt, "within a turn"},
		{"a clock with its first value", turn(record.Turn{Clock: true}), ErrCorrupt, "first value"},
		{"a clock of a share", turn(record.Turn{Clock: true, ShareKey: "ann", Value: 1}), ErrCorrupt, "share key"},
		{"a clock of a priority without tasks", turn(record.Turn{Clock: true, Priority: 1, Value: 1}), ErrCorrupt, "no task of the priority"},
		{"a turn of a type that is not fair", with(record.KindTurn, turns(1).records...), ErrCorrupt, "not fair"},
		{"shares out of order", with(record.KindShare, paused(2, "a"), paused(1, "b")), ErrCorrupt, "share 1 behind 2"},
		{"a share without a number", with(record.KindShare, paused(0, "a")), ErrCorrupt, "share 0 behind 0"},
		{"a share that is saved twice", with(record.KindShare, paused(1, "a"), paused(2, "a")), ErrCorrupt, "saved twice"},
		{"a share without a key", with(record.KindShare, paused(1, "")), ErrCorrupt, "no key"},
		{"a share of which nothing is set", with(record.KindShare, record.AppendShare(nil, 1, &record.Share{Type: "mail", Key: "a"})), ErrCorrupt, "nothing that is set"},
		{"a bucket without a limit", with(record.KindShare, record.AppendShare(nil, 1, &record.Share{Type: "mail", Key: "a", Spent: 1})), ErrCorrupt, "without a limit"},
		{"no header", []rawChunk{one(record.KindTask, task(same)), end()}, ErrCorrupt, "out of order"},
		{"nothing but an end", []rawChunk{end()}, ErrCorrupt, "out of order"},
		{"two headers", []rawChunk{head(), head(), end()}, ErrCorrupt, "out of order"},
		{"sections out of order", []rawChunk{head(), one(record.KindNode, node("a")), one(record.KindTask, task(same)), end()}, ErrCorrupt, "out of order"},
		{"no end", []rawChunk{head()}, ErrCorrupt, "cut off"},
		{"two ends", []rawChunk{head(), end(), end()}, ErrCorrupt, "behind the end"},
		{"an end of two records", []rawChunk{head(), one(record.KindEnd, nil, nil)}, ErrCorrupt, "out of order"},
		{"an empty chunk", []rawChunk{head(), one(record.KindTask), end()}, ErrCorrupt, "empty"},
		{"a kind of the future", []rawChunk{head(), one(11, []byte{8, 1}), end()}, ErrUnknownCommand, "kind 11"},
		{"a level of the future", []rawChunk{headOf(record.Header{Level: record.FeatureLevel + 1, NextID: 1, NextToken: 1, NextRequest: 1}), end()}, ErrUnknownCommand, "feature level"},
		{"a header without counters", []rawChunk{headOf(record.Header{Index: 1}), end()}, ErrCorrupt, "counter"},
		{"a field of the future", tasks(append(task(same), 0xf8, 2, 1)), ErrUnknownCommand, "field 47"},
		{"a status of the future", tasks(task(func(t *record.Task) { t.Status = 9 })), ErrUnknownCommand, "value 9"},
		{"an outcome of the future", tasks(task(func(t *record.Task) { t.Log = []record.Attempt{{Outcome: 7}} })), ErrUnknownCommand, "value 7"},
		{"a task without a status", tasks(task(func(t *record.Task) { t.Status = 0 })), ErrCorrupt, "no status"},
		{"a task without an id", tasks(task(func(t *record.Task) { t.ID = 0 })), ErrCorrupt, "id 0"},
		{"a task twice", tasks(task(same), task(same)), ErrCorrupt, "id 1 between 1 and 10"},
		{"tasks out of order", tasks(task(func(t *record.Task) { t.ID = 2 }), task(same)), ErrCorrupt, "id 1 between 2"},
		{"an id that was never given out", tasks(task(func(t *record.Task) { t.ID = 10 })), ErrCorrupt, "id 10"},
		{"a token that was never given out", tasks(task(func(t *record.Task) { t.Token = 10 })), ErrCorrupt, "token 10"},
		{"a key twice", tasks(task(func(t *record.Task) { t.Key = "k" }), task(func(t *record.Task) { t.ID, t.Key = 2, "k" })), ErrCorrupt, "key"},
		{"requests out of order", []rawChunk{head(), one(record.KindRequest, record.AppendRequest(nil, 2, &record.Request{ID: "a"}), record.AppendRequest(nil, 1, &record.Request{ID: "b"})), end()}, ErrCorrupt, "number 1 between 2"},
		{"two requests with one call", []rawChunk{head(), one(record.KindRequest, request(1), request(2)), end()}, ErrCorrupt, "claim request 2: a call of it is another's"},
		{"a request number never given out", []rawChunk{head(), one(record.KindRequest, record.AppendRequest(nil, 10, &record.Request{ID: "a"})), end()}, ErrCorrupt, "number 10"},
		{"a request with claims that do not live", []rawChunk{head(), one(record.KindRequest, record.AppendRequest(nil, 1, &record.Request{ID: "a", Live: 1, Claims: []record.RequestClaim{{ClaimRef: record.ClaimRef{TaskID: 1, Token: 1}}}})), end()}, ErrCorrupt, "claim request 1"},
		{"a node twice", []rawChunk{head(), one(record.KindNode, node("a"), node("a")), end()}, ErrCorrupt, `"a"`},
		{"a task type without a name", with(record.KindType, typ("")), ErrCorrupt, "without a name"},
		{"a task type twice", with(record.KindType, typ("a"), typ("a")), ErrCorrupt, `"a" behind "a"`},
		{"task types out of order", with(record.KindType, typ("b"), typ("a")), ErrCorrupt, `"a" behind "b"`},
		{"removed tasks out of order", with(record.KindGone, removed(3, 1, record.StatusFailed), removed(2, 2, record.StatusFailed)), ErrCorrupt, "id 2 between 3"},
		{"a removed task that was never given out", with(record.KindGone, removed(10, 1, record.StatusFailed)), ErrCorrupt, "id 10"},
		{"a removed task with a token never given out", with(record.KindGone, removed(2, 10, record.StatusFailed)), ErrCorrupt, "token 10"},
		{"a removed task that is there", with(record.KindGone, removed(1, 1, record.StatusFailed)), ErrCorrupt, "task 1 is there"},
		{"a removed task that had not ended", with(record.KindGone, removed(2, 1, record.StatusClaimed)), ErrCorrupt, "had not ended"},
		{"a removed task without a status", with(record.KindGone, removed(2, 1, 0)), ErrCorrupt, "had not ended"},
		{"removed tasks before task types", []rawChunk{head(), one(record.KindGone, removed(2, 1, record.StatusFailed)), one(record.KindType, typ("a")), end()}, ErrCorrupt, "out of order"},
		{"a schedule without a name", with(record.KindSchedule, schedule("")), ErrCorrupt, "without a name"},
		{"a schedule twice", with(record.KindSchedule, schedule("a"), schedule("a")), ErrCorrupt, `"a" behind "a"`},
		{"schedules out of order", with(record.KindSchedule, schedule("b"), schedule("a")), ErrCorrupt, `"a" behind "b"`},
		{"a schedule whose task was never given out", with(record.KindSchedule, record.AppendSchedule(nil, &record.ScheduleView{Schedule: record.Schedule{Name: "a"}, LastTaskID: 10})), ErrCorrupt, "task 10"},
		{"a paused schedule that waits", with(record.KindSchedule, record.AppendSchedule(nil, &record.ScheduleView{Schedule: record.Schedule{Name: "a", Paused: true, NextRunAt: 7}})), ErrCorrupt, "waits for 7"},
		{"a history of a type without that of all", with(record.KindHistory, history("a", 5, 5)), ErrCorrupt, "that of all tasks is the first"},
		{"a second history of all", with(record.KindHistory, history("", 5, 5), history("", 5, 5)), ErrCorrupt, "that of all tasks is the first"},
		{"two histories of a type", with(record.KindHistory, history("", 5, 5), history("a", 5, 5), history("a", 5, 5)), ErrCorrupt, `second history of type "a"`},
		{"histories of two minutes", with(record.KindHistory, history("", 5, 5), history("a", 6, 5)), ErrCorrupt, "minute 6 is under way, in others 5"},
		{"a history that begins late", with(record.KindHistory, history("", 5, 6)), ErrCorrupt, "begins after the minute under way"},
		{"a minute twice", with(record.KindHistory, history("", 5, 2, 3, 3)), ErrCorrupt, "minute 3 is out of order"},
		{"a minute that is under way", with(record.KindHistory, history("", 5, 2, 3, 5)), ErrCorrupt, "minute 5 is out of order"},
		{"a minute before the first", with(record.KindHistory, history("", 5, 2, 1)), ErrCorrupt, "minute 1 is out of order"},
		{"an end of the minute under way", with(record.KindHistory, record.AppendHistory(nil, &record.History{Open: record.Minute{Pending: 1}})), ErrCorrupt, "has an end"},
		{"no such bucket", with(record.KindHistory, record.AppendHistory(nil, &record.History{Minutes: []record.Minute{{Times: [2]record.Quantiles{{P50: 121}}}}})), ErrCorrupt, "121 is no bucket"},
		{"schedules before task types", []rawChunk{head(), one(record.KindSchedule, schedule("a")), one(record.KindType, typ("a")), end()}, ErrCorrupt, "out of order"},
		{"an empty backoff written out", tasks(append(task(same), 0xea, 1, 0)), ErrCorrupt, "empty"},
		{"an empty follow-up list written out", tasks(append(task(same), 0x92, 2, 0)), ErrCorrupt, "empty"},
		{"nodes out of order", []rawChunk{head(), one(record.KindNode, node("b")), one(record.KindNode, node("a")), end()}, ErrCorrupt, `"a" behind "b"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, err := ReadSnapshot(bytes.NewReader(joinSnapshot(seal(test.chunks))))
			if m != nil || !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.names) {
				t.Fatalf("machine %v, error %v; want %v that names %q", m != nil, err, test.want, test.names)
			}
		})
	}
}

func TestReadSnapshot_RefusesCountsAndHash(t *testing.T) {
	t.Parallel()
	whole := func() []rawChunk { return splitSnapshot(snapshotOf(t, smallMachine(t))) }
	without := whole()
	without[1].records = without[1].records[1:]
	if _, err := ReadSnapshot(bytes.NewReader(joinSnapshot(without))); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "counts") {
		t.Errorf("a task is missing: error %v", err)
	}
	chunks := whole()
	last := len(chunks) - 1
	r := record.From(chunks[last].records[0], nil)
	counts, hash := record.ReadEnd(&r)
	hash[15]++
	chunks[last].records[0] = record.AppendEnd(nil, counts, hash)
	if _, err := ReadSnapshot(bytes.NewReader(joinSnapshot(chunks))); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "hash") {
		t.Errorf("another hash: error %v", err)
	}
}

func TestReadSnapshot_NamesANewerVersion(t *testing.T) {
	t.Parallel()
	saved := snapshotOf(t, New())
	saved[len(snapshot.Magic)]++
	_, err := ReadSnapshot(bytes.NewReader(saved))
	if !errors.Is(err, ErrUnknownCommand) || !strings.Contains(err.Error(), "newer version") || !strings.Contains(err.Error(), "a snapshot of format 15") {
		t.Fatalf("error %v, want ErrUnknownCommand that names the version", err)
	}
}

func TestReadSnapshot_PassesTheReadersErrorOn(t *testing.T) {
	t.Parallel()
	saved, bad := snapshotOf(t, smallMachine(t)), errors.New("the disk is gone")
	for n := range len(saved) + 1 {
		r := io.MultiReader(bytes.NewReader(saved[:n]), iotest.ErrReader(bad))
		if m, err := ReadSnapshot(r); m != nil || !errors.Is(err, bad) || errors.Is(err, ErrCorrupt) {
			t.Fatalf("it fails after %d bytes: machine %v, error %v", n, m != nil, err)
		}
	}
}

func TestReadSnapshot_TakesAnyReader(t *testing.T) {
	t.Parallel()
	saved := snapshotOf(t, smallMachine(t))
	for name, r := range map[string]io.Reader{
		"a byte at a time":       iotest.OneByteReader(bytes.NewReader(saved)),
		"data and EOF at a time": iotest.DataErrReader(bytes.NewReader(saved)),
	} {
		m, err := ReadSnapshot(r)
		if err != nil || !bytes.Equal(snapshotOf(t, m), saved) {
			t.Errorf("%s: error %v, or another state", name, err)
		}
	}
}

// failingWriter takes n bytes, then fails.
type failingWriter struct {
	n   int
	err error
}

func (w *failingWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.n)
	w.n -= n
	if n < len(b) {
		return n, w.err
	}
	return n, nil
}

func TestSnapshot_WriteToPassesTheWritersErrorOn(t *testing.T) {
	t.Parallel()
	m := smallMachine(t)
	s := m.Snapshot()
	defer s.Release()
	bad := errors.New("the disk is full")
	for n := range written(t, s) {
		if got, err := s.WriteTo(&failingWriter{n, bad}); !errors.Is(err, bad) || got != int64(n) {
			t.Fatalf("it fails after %d bytes: wrote %d, error %v", n, got, err)
		}
	}
}

// bigMachine returns a machine of n tasks with that many bytes each.
func bigMachine(t testing.TB, n, size int) *Machine {
	t.Helper()
	m := New()
	for i := range n {
		submit := command.Submit{Tasks: []record.NewTask{{Type: "mail", Payload: bytes.Repeat([]byte{byte(i)}, size)}}}
		applyLog(t, m, []testEntry{{Index: uint64(i + 1), Commands: []command.Command{submit}}})
	}
	return m
}

func TestSnapshot_ChunksAreBounded(t *testing.T) {
	t.Parallel()
	tests := []struct{ tasks, size, chunks int }{
		{10_000, 256, 3}, // many records in a chunk
		{10, 300_000, 4}, // three in a chunk
		{3, 2 << 20, 3},  // one is larger than a chunk
		{1, 1 << 20, 1},  // one is larger by a little
	}
	for _, test := range tests {
		m := bigMachine(t, test.tasks, test.size)
		saved := snapshotOf(t, m)
		chunks := 0
		for _, c := range splitSnapshot(saved) {
			size := 0
			for _, packed := range c.records {
				size += protowire.SizeBytes(len(packed))
			}
			if size > snapshot.ChunkTarget && len(c.records) > 1 {
				t.Errorf("a chunk of %d bytes has %d records", size, len(c.records))
			}
			if c.kind == record.KindTask {
				chunks++
			}
		}
		if chunks != test.chunks {
			t.Errorf("%d tasks of %d bytes are in %d chunks, want %d", test.tasks, test.size, chunks, test.chunks)
		}
		if got := restore(t, saved); hashOf(got) != hashOf(m) {
			t.Errorf("%d tasks of %d bytes: the restored hash differs", test.tasks, test.size)
		}
	}
}

// allocatedBy returns how many bytes f allocates.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestSnapshot_WriteToNeedsOneChunkOfMemory(t *testing.T) {
	m := bigMachine(t, 30_000, 1000)
	s := m.Snapshot()
	defer s.Release()
	if got, bound := allocatedBy(func() { _, _ = s.WriteTo(io.Discard) }), uint64(8<<20); got > bound {
		t.Errorf("writing 30 MB allocates %d bytes, want at most %d", got, bound)
	}
	if got, bound := allocatedBy(func() { s.Hash() }), uint64(1<<20); got > bound {
		t.Errorf("hashing 30 MB allocates %d bytes, want at most %d", got, bound)
	}
}

// A length that lies costs no memory.
func TestReadSnapshot_AllocatesWhatIsThere(t *testing.T) {
	for _, length := range []uint32{snapshot.ChunkMax, snapshot.ChunkMax + 1, math.MaxUint32} {
		b := append([]byte(snapshot.Magic), record.Format)
		b = append(binary.LittleEndian.AppendUint32(b, length), byte(record.KindHeader), 1, 2, 3)
		var err error
		got := allocatedBy(func() { _, err = ReadSnapshot(bytes.NewReader(b)) })
		if bound := uint64(1 << 20); got > bound || !errors.Is(err, ErrCorrupt) {
			t.Errorf("length %d: %d bytes allocated, want at most %d; error %v", length, got, bound, err)
		}
		if named := strings.Contains(err.Error(), "is above"); named != (length > snapshot.ChunkMax) {
			t.Errorf("length %d: error %v", length, err)
		}
	}
}

func FuzzReadSnapshot(f *testing.F) {
	f.Add(snapshotOf(f, New()))
	f.Add(snapshotOf(f, smallMachine(f)))
	f.Add([]byte(snapshot.Magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		checkRead(t, b)
		// Mutations rarely get past the checksums: make them right.
		checkRead(t, joinSnapshot(seal(splitSnapshot(b))))
	})
}
