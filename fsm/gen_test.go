package fsm

import (
	"math/rand/v2"

	"pgregory.net/rapid"
)

// testEntry is one entry of a log.
type testEntry struct {
	Index    uint64
	Stamp    Stamp
	Commands []Command
}

// randomLog returns a log of n entries that do all there is to do: most
// commands hit what is there, some are late, double or wrong. The same seed
// gives the same log.
func randomLog(seed uint64, n int) []testEntry {
	rng := rand.New(rand.NewPCG(seed, 1))
	return makeLog(rng.IntN, n)
}

// drawLog is randomLog for a property: rapid makes the choices, and shrinks.
func drawLog(t *rapid.T, entriesMax int) []testEntry {
	die := rapid.Uint32()
	dice := func(n int) int { return int(die.Draw(t, "die") % uint32(n)) }
	return makeLog(dice, rapid.IntRange(1, entriesMax).Draw(t, "entries"))
}

// makeLog makes a log by applying it, so that it knows which claims live.
func makeLog(dice func(n int) int, n int) []testEntry {
	g := newGenerator(dice)
	m := New()
	log := make([]testEntry, n)
	for i := range log {
		log[i] = g.entry(m)
		if _, err := m.apply(log[i].Index, log[i].Stamp, log[i].Commands); err != nil {
			panic(err) // the generator made an unknown command
		}
	}
	return log
}

// mustApplyTo applies an entry.
func mustApplyTo(t rapid.TB, m *Machine, e testEntry) Applied {
	t.Helper()
	a, err := m.apply(e.Index, e.Stamp, e.Commands)
	if err != nil {
		t.Fatalf("apply entry %d: %v", e.Index, err)
	}
	return a
}

// generator makes random commands. dice returns one of 0 to n-1.
type generator struct {
	dice  func(n int) int
	index uint64
	stamp Stamp
}

func newGenerator(dice func(n int) int) *generator {
	return &generator{dice: dice, stamp: Stamp{T: 1_700_000_000_000}}
}

// entry returns the next entry for a log that has led to m.
func (g *generator) entry(m *Machine) testEntry {
	g.index += uint64(1 + g.dice(3))
	switch g.dice(20) {
	case 0: // long enough for requests to be forgotten
		g.stamp.U += rememberMS
		g.stamp.T += rememberMS
	case 1: // another leader, whose clocks are behind
		g.stamp.U = max(0, g.stamp.U-1000)
		g.stamp.T -= 5000
	default:
		g.stamp.U += int64(g.dice(2000))
		g.stamp.T += int64(g.dice(2000))
	}
	commands := make([]Command, 1+g.dice(4))
	for i := range commands {
		commands[i] = g.command(m)
	}
	return testEntry{Index: g.index, Stamp: g.stamp, Commands: commands}
}

func (g *generator) command(m *Machine) Command {
	switch g.dice(24) {
	case 0, 1, 2, 3, 4:
		return g.submit()
	case 5, 6, 7, 8, 9:
		return g.claimNext()
	case 10, 11:
		return ClaimTask{ID: g.id(m), WorkerID: g.worker(), LeaseMS: g.lease(), RequestID: g.request()}
	case 12, 13, 14:
		return Complete{Hold: g.hold(m), Result: g.bytes("result")}
	case 15, 16:
		return Fail{Hold: g.hold(m), Error: pick(g, "", "no route", "timeout")}
	case 17:
		return Extend{Hold: g.hold(m), LeaseMS: g.lease()}
	case 18:
		return Release{Hold: g.hold(m)}
	case 19:
		h := g.hold(m)
		return Retry{ID: h.ID, Token: pick(g, 0, h.Token), AddAttempts: int32(g.dice(3))}
	case 20:
		return Delete{ID: g.id(m)}
	case 21, 22:
		return g.expire(m)
	}
	return g.other()
}

func (g *generator) other() Command {
	switch g.dice(8) {
	case 0:
		return Checkpoint{}
	case 1, 2:
		name := pick(g, "n1", "n2", "n3", "n4")
		return SetNode{Node: NodeRecord{UUID: "uuid-" + name, NodeID: name, PeerAddr: name + ":1", HTTPAddr: "http://" + name + ":2", Version: pick(g, "1.0", "1.1"), Level: uint32(g.dice(3))}}
	case 3:
		return RemoveNode{UUID: pick(g, "uuid-n1", "uuid-n2", "uuid-n3", "uuid-n4")}
	case 4:
		return SetLevel{Level: uint32(g.dice(levelLife))} // the model knows nothing of levelLife
	}
	return Tick{}
}

func (g *generator) submit() Command {
	tasks := make([]NewTask, 1+g.dice(3)*g.dice(2))
	for i := range tasks {
		tasks[i] = NewTask{
			Type:        pick(g, "mail", "scan", "video"),
			Priority:    int32(pick(g, 0, 0, 0, 5, -5, 1<<31-1, -1<<31)),
			MaxAttempts: pick[int32](g, DefaultAttempts, 0, 1, 2, 3),
			Key:         pick(g, "", "", "k1", "k2", "k3"),
			LeaseMS:     int64(pick(g, 0, 0, 500)),
		}
		if g.dice(2) == 0 {
			tasks[i].Params = []byte(pick(g, `{"a":1}`, `null`, `[]`))
		} else {
			tasks[i].Payload = []byte{byte(g.dice(256))}
		}
	}
	return Submit{Tasks: tasks}
}

func (g *generator) claimNext() Command {
	return ClaimNext{
		WorkerID:  g.worker(),
		Types:     [][]string{nil, {"mail"}, {"scan"}, {"mail", "scan"}, {"mail", "scan", "video"}, {"none"}}[g.dice(6)],
		SortBy:    SortBy(g.dice(2)),
		Ascending: g.dice(2) == 0,
		Limit:     int32(pick(g, 1, 1, 2, 5)),
		LeaseMS:   g.lease(),
		RequestID: g.request(),
	}
}

// hold names a claim: mostly the live one, sometimes an earlier one or a wrong
// one, sometimes without its token.
func (g *generator) hold(m *Machine) Hold {
	h := Hold{ID: g.id(m), WorkerID: g.worker(), Token: uint64(g.dice(30))}
	if leases := liveLeases(m); len(leases) > 0 && g.dice(4) > 0 {
		h.ID = leases[g.dice(len(leases))].TaskID
	}
	if t := m.Get(h.ID); t != nil && len(t.Log) > 0 && g.dice(6) > 0 {
		last := t.Log[len(t.Log)-1]
		if g.dice(4) == 0 {
			last = t.Log[g.dice(len(t.Log))]
		}
		h.WorkerID, h.Token = last.WorkerID, last.Token
	}
	switch g.dice(8) {
	case 0:
		h.Token = 0
	case 1:
		h.WorkerID = g.worker()
	}
	return h
}

func (g *generator) expire(m *Machine) Command {
	leases := liveLeases(m)
	items := make([]Lease, g.dice(4))
	for i := range items {
		items[i] = Lease{TaskID: g.id(m), Token: uint64(g.dice(30)), Seq: uint32(g.dice(3))}
		if len(leases) > 0 && g.dice(5) > 0 {
			l := leases[g.dice(len(leases))]
			items[i] = Lease{TaskID: l.TaskID, Token: l.Token, Seq: l.Seq - uint32(g.dice(5)/4)}
		}
	}
	return Expire{Items: items}
}

func (g *generator) id(m *Machine) uint64 { return 1 + uint64(g.dice(int(m.header.NextID)+1)) }

func (g *generator) worker() string { return pick(g, "w1", "w2", "w3") }

func (g *generator) lease() int64 { return int64(pick(g, 0, 0, 100, 60_000)) }

func (g *generator) request() string { return pick(g, "", "", "q1", "q2", "q3", "q4") }

func (g *generator) bytes(s string) []byte {
	if g.dice(3) == 0 {
		return nil
	}
	return []byte(s)
}

func pick[T any](g *generator, of ...T) T { return of[g.dice(len(of))] }

func liveLeases(m *Machine) []Lease {
	var leases []Lease
	for l := range m.Leases() {
		leases = append(leases, l)
	}
	return leases
}
