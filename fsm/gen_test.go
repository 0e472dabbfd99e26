package fsm

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/snapshot"
)

// testEntry is one entry of a log.
type testEntry struct {
	Index    uint64
	Stamp    record.Stamp
	Commands []command.Command
}

// randomLog returns a log of n entries that do all there is to do: most
// commands hit what is there, some are late, double or wrong. The same seed
// gives the same log.
func randomLog(seed uint64, n int) []testEntry {
	rng := rand.New(rand.NewPCG(seed, 1))
	return newGenerator(rng.IntN).makeLog(n)
}

// drawLog is randomLog for a property: rapid makes the choices, and shrinks.
func drawLog(t *rapid.T, entriesMax int) []testEntry {
	return drawThemedLog(t, entriesMax, 0, themeCount)
}

// drawThemedLog is drawLog with one of the themes from first on, and before end.
func drawThemedLog(t *rapid.T, entriesMax, first, end int) []testEntry {
	die := rapid.Uint32()
	g := newGenerator(func(n int) int { return int(die.Draw(t, "die") % uint32(n)) })
	g.theme = first + g.dice(end-first)
	return g.makeLog(rapid.IntRange(1, entriesMax).Draw(t, "entries"))
}

// makeLog makes a log by applying it, so that it knows which claims live.
func (g *generator) makeLog(n int) []testEntry {
	m := New()
	m.gone.max = smallMemory
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

// generator makes random commands. dice returns one of 0 to n-1; 0 is
// the plainest choice, to which properties shrink.
type generator struct {
	dice  func(n int) int
	index uint64
	stamp record.Stamp
	// theme is the main subject of the log, so that related commands meet in it.
	theme int
	// past are some commands of before: clients repeat what they heard no
	// answer to, at once or late.
	past []command.Command
}

const pastMax = 12

// The themes of a log.
const (
	themeAll = iota
	themeGroups
	themeLimits
	themeTime
	themeKeys
	themeThen
	themeSight
	themeSteps
	themeFinalization
	themeCount
)

func newGenerator(dice func(n int) int) *generator {
	return &generator{dice: dice, stamp: record.Stamp{T: 1_700_000_000_000}, theme: dice(themeCount)}
}

// entry returns the next entry for a log that has led to m.
func (g *generator) entry(m *Machine) testEntry {
	g.index += uint64(1 + g.dice(3))
	e := testEntry{Index: g.index}
	if g.index <= 3 && g.dice(8) > 0 { // most clusters begin at the newest level
		e.Commands = []command.Command{command.SetLevel{Level: record.FeatureLevel}}
	}
	g.moveClocks(m)
	e.Stamp = g.stamp
	for range 1 + g.dice(4) {
		c := g.command(m)
		e.Commands = append(e.Commands, c)
		g.past = append(g.past[max(0, len(g.past)+1-pastMax):], c)
		// The model cannot tell what jitter an expiry drew, or what an eviction
		// left, once other commands have changed it.
		switch c.(type) {
		case command.Expire, command.Evict, command.Forget:
			return e
		}
	}
	return e
}

// moveClocks lets time go on, often to where something is just due, or is not yet.
func (g *generator) moveClocks(m *Machine) {
	s := &g.stamp
	switch g.dice(20) {
	case 0: // another leader, whose clocks are behind
		s.U = max(0, s.U-1000)
		s.T -= 5000
	case 1: // long enough for requests and removed tasks to be forgotten
		s.U += rememberMS - int64(g.dice(2))
		s.T += rememberMS
	case 2: // when the next of them is
		s.U = max(s.U, g.forgotten(m)-int64(g.dice(2)))
	case 3: // days without a leader
		s.T += int64(pick(g, dayMS, 14*dayMS))
	case 4, 5: // when something is due
		if due, ok := m.NextDue(); ok {
			s.T = max(s.T, due-1+int64(g.dice(3)))
		}
	case 6:
		if slot, ok := m.NextSlot(); ok {
			s.T = max(s.T, slot-1+int64(g.dice(3)))
		}
	case 7: // when a claim of a finalization is over
		s.U = max(s.U, g.finalizationEnd(m)-1+int64(g.dice(3)))
	case 8:
	default:
		n := int64(g.dice(2000))
		s.U, s.T = s.U+n, s.T+n
	}
}

// forgotten returns when one of the removed tasks will be forgotten.
func (g *generator) forgotten(m *Machine) int64 {
	var at []int64
	for _, x := range m.gone.table.All() {
		at = append(at, x.ForgetU)
	}
	if len(at) == 0 {
		return 0
	}
	return at[g.dice(len(at))]
}

func (g *generator) command(m *Machine) command.Command {
	switch g.dice(8) {
	case 1:
		return g.themed(m)
	case 2:
		return g.again()
	case 3, 4, 5:
		if g.theme >= themeSteps || g.theme == themeKeys {
			return g.themed(m)
		}
	}
	switch g.dice(48) {
	case 0, 1, 2, 3, 4, 5:
		return g.submit()
	case 6, 7, 8, 9, 10, 11:
		return g.nextClaim()
	case 12, 13:
		return command.ClaimTask{ID: g.id(m), WorkerID: g.worker(), LeaseMS: g.lease(), RequestID: g.request()}
	case 14, 15, 16, 17:
		return g.complete(m)
	case 18, 19, 20:
		return g.fail(m)
	case 21:
		return command.Extend{Hold: g.hold(m), LeaseMS: g.lease(), Progress: pick(g, nil, []byte(`1`), []byte(`"half"`)), Exact: g.dice(3) == 0}
	case 22, 23:
		return command.Release{Hold: g.hold(m), DelayMS: g.delay(), Answer: uint32(g.dice(3))}
	case 24, 25:
		return g.retry(m)
	case 26:
		return command.Delete{ID: g.id(m)}
	case 27, 28:
		return command.Cancel{ID: g.id(m)}
	case 29:
		if g.theme == themeTime && g.dice(2) == 0 {
			return g.signal(m)
		}
		return g.patch(m)
	case 30, 31:
		return g.expire(m)
	case 32:
		return g.setType()
	case 33:
		return pick[command.Command](g, g.setType(), g.setShare())
	case 34, 35:
		return g.batch(m)
	case 36:
		if g.dice(4) == 0 {
			return command.Forget{Bytes: int64(1+g.dice(4)) * 150}
		}
		return command.Evict{Bytes: int64(g.dice(4)) * 250 * int64(1+5*g.dice(2))}
	case 37, 38:
		return command.Tick{}
	case 39, 40, 41, 42:
		return g.sight(m)
	case 43, 44, 45:
		return g.ofParent(m)
	case 46:
		return g.moveTasks(m)
	}
	return g.other(m)
}

// moveTasks starts a move, often of dead letters, or cancels one.
func (g *generator) moveTasks(m *Machine) command.MoveTasks {
	c := command.MoveTasks{Type: g.taskType(), To: pick(g, "", "", g.taskType()), Rate: pick[int32](g, 0, 1, 2, 500), By: g.operator()}
	if v, _ := m.Type(c.Type, m.Stamp()); v.Move != nil && g.dice(2) == 0 {
		c.Cancel = v.Move.Number
	}
	return c
}

// again returns an earlier command. It leaves out the leader's own and those that the model
// cannot follow twice.
func (g *generator) again() command.Command {
	if len(g.past) > 0 {
		switch c := g.past[g.dice(len(g.past))].(type) {
		case command.ClaimNext, command.ClaimTask, command.Complete, command.Fail, command.Release, command.Retry, command.Cancel, command.ClaimFinalization, command.ReleaseFinalization, command.Finalize:
			return c
		}
	}
	return g.nextClaim()
}

// themed is a command that matters to the theme.
func (g *generator) themed(m *Machine) command.Command {
	plain := command.ClaimNext{WorkerID: g.worker(), Limit: 1}
	switch g.theme {
	case themeGroups:
		h := g.hold(m)
		return pick[command.Command](g, plain, command.Fail{Hold: h, Permanent: true}, command.Cancel{ID: g.id(m)}, g.retry(m), g.retry(m))
	case themeLimits:
		return pick[command.Command](g, plain, g.complete(m), g.setType(), g.setShare(), g.batch(m), g.moveTasks(m))
	case themeTime:
		return pick[command.Command](g, plain, g.fail(m), command.Tick{}, g.moveTasks(m))
	case themeKeys:
		return pick[command.Command](g, plain, g.submit(), g.complete(m), command.Cancel{ID: g.id(m)}, g.retry(m), command.Retry{ID: g.keyless(m)})
	case themeSteps:
		return g.themedSteps(m)
	case themeFinalization:
		return pick(g, g.themedSteps(m), g.themedSteps(m), g.finalization(m), g.finalization(m), g.finalization(m))
	case themeSight:
		return pick[command.Command](g, plain, g.complete(m), g.sight(m), g.setSchedule(m), g.runSchedules(m), g.runSchedules(m), g.act(m))
	}
	return pick[command.Command](g, plain, g.complete(m), g.batch(m))
}

// keyless returns a task whose key became free when it ended, or 0.
func (g *generator) keyless(m *Machine) uint64 {
	var ids []uint64
	for id, t := range m.tasks.All() {
		if t.Key != "" && t.Opts().UniqueActive && t.Status.Ended() && t.Status != record.StatusCompleted {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return 0
	}
	return ids[g.dice(len(ids))]
}

func (g *generator) other(m *Machine) command.Command {
	switch g.dice(11) {
	case 0: // what changes nothing: also the rest of a restore that was given up
		switch m.Index() % 4 {
		case 1:
			return command.RestoreChunk{Begin: m.Index(), Data: []byte(snapshot.Magic)}
		case 2:
			return command.RestoreEnd{Begin: m.Index()}
		}
		return command.Checkpoint{}
	case 1, 2:
		name := pick(g, "n1", "n2", "n3", "n4")
		return command.SetNode{Node: record.NodeRecord{UUID: "uuid-" + name, NodeID: name, PeerAddr: name + ":1", HTTPAddr: "http://" + name + ":2", Version: pick(g, "1.0", "1.1"), Level: uint32(g.dice(3)), Nonvoter: g.dice(6) == 1}}
	case 3:
		return command.RemoveNode{UUID: pick(g, "uuid-n1", "uuid-n2", "uuid-n3", "uuid-n4")}
	case 4:
		return command.SetLevel{Level: uint32(g.dice(int(record.FeatureLevel) + 1)), By: g.operator()}
	case 9, 10:
		t := g.setType()
		return command.SetDefaults{Set: t.Set & command.DefaultFields, Defaults: record.DefaultsOf(&t.Settings), By: t.By}
	case 5, 6:
		return command.Tell{Kind: g.toldKind(), By: g.operator(), What: pick(g, "n2", "", "at index 7")}
	}
	return command.Tick{}
}

// operator is the name of an operator's key, mostly none.
func (g *generator) operator() string { return pick(g, "", "", "", "deploy", "ann") }

func (g *generator) submit() command.Submit {
	var tasks []record.NewTask
	for range 1 + g.dice(3)*g.dice(2) {
		tasks = append(tasks, g.newTask())
	}
	return command.Submit{Tasks: tasks}
}

// often is true rarely, but in logs with the theme nearly always.
func (g *generator) often(theme int) bool {
	if g.theme == theme {
		return g.dice(4) > 0
	}
	return g.dice(6) == 1
}

// newTask is mostly a plain task, sometimes a parent.
func (g *generator) newTask() record.NewTask {
	if g.theme >= themeSteps && g.dice(3) > 0 || g.dice(12) == 1 {
		return g.newParent()
	}
	return g.plainTask()
}

func (g *generator) plainTask() record.NewTask {
	t := record.NewTask{
		Type:        g.taskType(),
		Priority:    int32(pick(g, 0, 0, 0, 5, -5, 1<<31-1, -1<<31)),
		MaxAttempts: pick[int32](g, record.DefaultAttempts, 0, 1, 2, 3),
		LeaseMS:     int64(pick(g, 0, 0, 500)),
	}
	if g.dice(2) == 0 {
		t.Params = []byte(pick(g, `{"a":1}`, `null`, `[]`))
	} else {
		t.Payload = []byte{byte(g.dice(256))}
	}
	if g.often(themeKeys) {
		t.Key, t.UniqueActive, t.KeyOfType = g.key(), g.dice(3) > 0, g.dice(3) == 0
		t.Replace = g.theme == themeKeys && g.dice(3) == 0
		if g.dice(3) == 0 {
			t.UniqueActive, t.UniqueMS = false, pick[int64](g, 1, 700, 2*rememberMS)
		}
	}
	if g.often(themeGroups) {
		t.Group = pick(g, "g1", "g2")
	}
	if g.often(themeLimits) {
		t.ShareKey = pick(g, "ann", "ben", "cy")
	}
	if g.often(themeTime) {
		switch g.dice(3) {
		case 0:
			t.DelayMS = g.delay()
		case 1:
			t.RunAt = g.time()
		default:
			t.AtOnce = g.dice(2) == 0
		}
	}
	if g.often(themeTime) {
		t.ExpiresAt, t.ExpiresAgain = g.time(), g.dice(2) == 0
	}
	if g.often(themeTime) {
		t.Backoff = g.backoff()
	}
	if g.theme == themeTime && g.dice(4) == 0 {
		t.SignalMS = pick[int64](g, 1, 900, 100_000)
	}
	switch {
	case g.theme == themeKeys && !t.UniqueActive: // the key of a removed task, which others had before
		t.RetentionMS = pick[int64](g, record.KeepNone, record.KeepNone, record.KeepNone, 1, 0)
	case g.often(themeTime) || g.often(themeThen):
		t.RetentionMS = g.retention()
	}
	if g.dice(4) == 1 || g.theme == themeSight {
		t.Labels = g.labels()
	}
	if g.dice(12) == 1 {
		t.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		t.Attributes = []byte(`{"a":1}`)
	}
	return t
}

func (g *generator) taskType() string { return pick(g, "mail", "scan", "video") }

func (g *generator) key() string {
	if g.theme == themeKeys {
		return pick(g, "k1", "k1", "k1", "k2")
	}
	return pick(g, "k1", "k1", "k2", "k3")
}

func (g *generator) labels() []record.Label {
	return pick(g, nil, []record.Label{{Name: "a", Value: "1"}}, []record.Label{{Name: "a", Value: "2"}, {Name: "b", Value: ""}})
}

func (g *generator) retention() int64 {
	return pick[int64](g, 0, record.KeepNone, record.KeepForever, 1, 1000, dayMS)
}

// delay and time are of the order of the steps that the clocks make.
func (g *generator) delay() int64 { return pick[int64](g, 0, 0, 1, 500, 3000, dayMS) }

func (g *generator) time() int64 {
	return g.stamp.T + pick[int64](g, 1, 0, -1000, 500, 3000, dayMS)
}

func (g *generator) backoff() *record.Backoff {
	b := &record.Backoff{InitialMS: pick[int64](g, 1000, 50, 333), Factor: pick[int64](g, 2_000_000, 1_000_000, 1_500_000, 1_000_000_000)}
	b.MaxMS = max(b.InitialMS, pick[int64](g, dayMS, 0, 2500))
	b.Jitter = pick[int64](g, 0, 0, 200_000, 333_333, 1_000_000)
	return b
}

func (g *generator) claimNext() command.Command { return g.nextClaim() }

func (g *generator) nextClaim() command.ClaimNext {
	c := command.ClaimNext{
		WorkerID:  g.worker(),
		Types:     [][]string{nil, {"mail"}, {"scan"}, {"mail", "scan"}, {"mail", "scan", "video"}, {"none"}}[g.dice(6)],
		SortBy:    command.SortBy(g.dice(3)),
		Ascending: g.dice(2) == 0,
		Limit:     int32(pick(g, 1, 1, 2, 5)),
		LeaseMS:   g.lease(),
		RequestID: g.request(),
	}
	if c.RequestID != "" {
		c.RequestPlace = pick[uint32](g, 0, 0, 1, 2, 3)
	}
	if g.dice(4) == 1 {
		c.MoreAttempts = pick[int32](g, 1, 2, 0, command.AttemptsLeftMax)
	}
	c.Runs = g.theme == themeGroups && g.dice(3) == 0
	if c.SortBy == command.SortRandom {
		c.Ascending = false
	}
	if c.Types == nil && c.SortBy == command.SortPriority {
		c.Ascending = false
	}
	return c
}

func (g *generator) complete(m *Machine) command.Complete {
	c := command.Complete{Hold: g.hold(m), Result: g.bytes("result"), Late: g.dice(3) == 0}
	if g.often(themeThen) {
		c.Submit = g.submit().Tasks
	}
	if g.often(themeThen) {
		next := g.nextClaim()
		c.Claim = &next
	}
	return c
}

func (g *generator) fail(m *Machine) command.Fail {
	f := command.Fail{Hold: g.hold(m), Error: pick(g, "", "no route", "timeout"), Permanent: g.dice(8) == 1}
	if g.dice(4) == 1 {
		f.RetryIn, f.RetryInMS = true, g.delay()
	}
	return f
}

// retry is mostly of a task that has ended or is claimed.
func (g *generator) retry(m *Machine) command.Retry {
	h := g.hold(m)
	var ended, active, taken []*record.Task
	for _, t := range m.tasks.All() {
		if t.Status == record.StatusFailed || t.Status == record.StatusCancelled {
			ended = append(ended, t)
			if t.Opts().UniqueActive {
				active = append(active, t)
				if _, gone := m.goneKeyHolder(t.Type, t.Key, t.Opts().KeyOfType, (*goneTasks).named); gone != nil {
					taken = append(taken, t)
				}
			}
		}
	}
	if len(active) > 0 && g.dice(3) == 0 {
		ended = active
	}
	if len(taken) > 0 { // seldom: by a task that was removed
		ended = taken
	}
	if len(ended) > 0 && g.dice(2) == 0 {
		t := ended[g.dice(len(ended))]
		h = command.Hold{ID: t.ID, Token: t.Token}
	}
	return command.Retry{ID: h.ID, Token: pick(g, 0, h.Token), AddAttempts: int32(g.dice(3))}
}

// signal is mostly for a task that needs one, or has had it.
func (g *generator) signal(m *Machine) command.Signal {
	c := command.Signal{ID: g.id(m), Body: pick(g, nil, []byte(`{"ok":true}`)), By: g.operator()}
	var need []uint64
	for id, t := range m.tasks.All() {
		if t.Opts().SignalMS != 0 {
			need = append(need, id)
		}
	}
	if len(need) > 0 && g.dice(4) > 0 {
		c.ID = need[g.dice(len(need))]
	}
	return c
}

func (g *generator) patch(m *Machine) command.Patch {
	p := command.Patch{ID: g.id(m), SetPriority: g.dice(2) == 0, SetRunAt: g.dice(2) == 0, SetLabels: g.dice(2) == 0}
	if p.SetPriority {
		p.Priority = int32(pick(g, 0, 5, -5))
	}
	if p.SetRunAt {
		p.RunAt = pick(g, 0, g.time())
	}
	if p.SetLabels {
		p.Labels = g.labels()
	}
	if p.SetShareKey = g.often(themeLimits); p.SetShareKey {
		p.ShareKey = pick(g, "", "ann", "ben")
	}
	return p
}

func (g *generator) rate() int64 {
	return pick[int64](g, 1_000_000, 1, 333_333, 2_500_000, 100_000_000)
}

// setShare replaces the settings of a share.
func (g *generator) setShare() command.SetShare {
	c := command.SetShare{Type: g.taskType(), ShareKey: pick(g, "ann", "ben"), By: g.operator()}
	if g.dice(4) == 0 {
		return c
	}
	c.Settings = record.ShareSettings{Paused: g.dice(4) == 0, MaxClaimed: pick[int32](g, 0, 1, 2), Weight: pick[int32](g, 0, 1, 300)}
	if g.dice(2) == 0 {
		c.Settings.RateLimit = g.rate()
	}
	return c
}

// setType sets some settings, and clears some.
func (g *generator) setType() command.SetType {
	c := command.SetType{Type: g.taskType(), By: g.operator()}
	has := func(f record.TypeFields, theme int) bool {
		if g.dice(4) != 0 && !(g.theme == theme && g.dice(2) == 0) {
			return false
		}
		c.Set |= f
		return g.dice(3) > 0
	}
	if has(record.TypePaused, themeLimits) {
		c.Settings.Paused = g.dice(3) == 0
	}
	if has(record.TypeMaxClaimed, themeLimits) {
		c.Settings.MaxClaimed = pick[int32](g, 1, 2, 3)
	}
	if has(record.TypeMaxClaimedPerKey, themeLimits) {
		c.Settings.MaxClaimedPerKey = pick[int32](g, 1, 1, 2)
	}
	if has(record.TypeRateLimitPerKey, themeLimits) {
		c.Settings.RateLimitPerKey = g.rate()
	}
	if has(record.TypeFair, themeLimits) {
		c.Settings.Fair = g.dice(3) > 0
	}
	if has(record.TypeRateLimit, themeLimits) {
		c.Settings.RateLimit = g.rate()
	}
	if has(record.TypeLease, themeTime) {
		c.Settings.LeaseMS = pick[int64](g, 700, 90_000)
	}
	if has(record.TypeMaxAttempts, themeTime) {
		c.Settings.LimitSet, c.Settings.MaxAttempts = true, pick[int32](g, 1, 0, 5)
	}
	if has(record.TypeBackoff, themeTime) {
		c.Settings.Backoff = g.backoff()
	}
	if has(record.TypeRetention, themeTime) {
		c.Settings.RetentionMS = g.retention()
	}
	if has(record.TypeDelay, themeTime) {
		c.Settings.DelayMS = pick[int64](g, 1, 700, 5000)
	}
	if has(record.TypeDeadLetter, themeTime) {
		c.Settings.DeadLetter, c.Settings.DeadLetterAfter = g.taskType(), pick[int32](g, 0, 1, 2)
	}
	if has(record.TypeQueue, themeLimits) {
		c.Settings.Queue = pick(g, "1 a", "2 b")
	}
	if g.dice(8) == 0 {
		c.IfQueue, c.Queue = true, pick(g, "", "1 a", "2 b")
	}
	return c
}

func (g *generator) batch(m *Machine) command.Batch {
	b := command.Batch{Atomic: g.dice(2) == 0, RequestID: g.request()}
	for range 1 + g.dice(4) {
		b.Ops = append(b.Ops, g.op(m, b.Atomic))
	}
	if b.Atomic && g.dice(3) == 1 { // everything that went well is undone
		b.Ops = append(b.Ops, command.Cancel{ID: 1 << 40})
	}
	return b
}

// op is a command that a batch may hold. What an atomic one that was refused
// drew by lot is not known to the model: so it draws nothing.
func (g *generator) op(m *Machine, atomic bool) command.Command {
	plain := func(c command.ClaimNext) command.ClaimNext {
		if atomic && c.SortBy == command.SortRandom {
			c.SortBy = command.SortPriority
		}
		return c
	}
	if g.theme >= themeSteps && g.dice(3) == 1 {
		return g.opOfParent(m)
	}
	switch g.dice(12) {
	case 0, 1, 2:
		return command.Submit{Tasks: g.submit().Tasks[:1]}
	case 3:
		return plain(g.nextClaim())
	case 4:
		return command.ClaimNext{WorkerID: g.worker(), Limit: 2, RequestID: g.request()}
	case 5, 6:
		c := g.complete(m)
		if c.Claim != nil {
			next := plain(*c.Claim)
			c.Claim = &next
		}
		return c
	case 7:
		f := g.fail(m)
		f.RetryIn = f.RetryIn || atomic // in place of a backoff and its jitter
		return f
	case 8:
		return command.Extend{Hold: g.hold(m), LeaseMS: g.lease(), Exact: g.dice(3) == 0}
	case 9:
		return command.Release{Hold: g.hold(m), DelayMS: g.delay(), Answer: uint32(g.dice(3))}
	case 10:
		return command.Cancel{ID: g.id(m)}
	}
	if g.dice(2) == 0 {
		return g.retry(m)
	}
	return command.Delete{ID: g.id(m)}
}

// hold names a claim: mostly the live one, sometimes an earlier one or a wrong
// one, sometimes without its token; also of tasks that were removed.
func (g *generator) hold(m *Machine) command.Hold {
	h := command.Hold{ID: g.id(m), WorkerID: g.worker(), Token: uint64(g.dice(30))}
	if leases := liveLeases(m); len(leases) > 0 && g.dice(4) > 0 {
		h.ID = leases[g.dice(len(leases))].TaskID
	}
	if x := m.gone.table.Get(h.ID); x != nil && x.WorkerID != "" && g.dice(6) > 0 {
		h.WorkerID, h.Token = x.WorkerID, x.Token
	}
	if t := m.Get(h.ID); t != nil && len(t.Claims()) > 0 && g.dice(6) > 0 {
		claims := t.Claims()
		last := claims[len(claims)-1]
		if g.dice(4) == 0 {
			last = claims[g.dice(len(claims))]
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

func (g *generator) expire(m *Machine) command.Command {
	leases := liveLeases(m)
	items := make([]command.Lease, g.dice(4))
	for i := range items {
		items[i] = command.Lease{TaskID: g.id(m), Token: uint64(g.dice(30)), Seq: uint32(g.dice(3))}
		if len(leases) > 0 && g.dice(5) > 0 {
			l := leases[g.dice(len(leases))]
			items[i] = command.Lease{TaskID: l.TaskID, Token: l.Token, Seq: l.Seq - uint32(g.dice(5)/4)}
		}
	}
	return command.Expire{Items: items}
}

// id is mostly of a task that is there, sometimes of one of the last removed.
func (g *generator) id(m *Machine) uint64 {
	var known []uint64
	switch g.dice(4) {
	case 0:
		return 1 + uint64(g.dice(int(m.header.NextID)+1))
	case 1:
		for id := range m.gone.table.All() {
			known = append(known, id)
		}
	default:
		for id := range m.tasks.All() {
			known = append(known, id)
		}
	}
	if len(known) == 0 {
		return 1
	}
	slices.Reverse(known)
	return known[g.dice(min(len(known), 12))]
}

func (g *generator) worker() string { return pick(g, "w1", "w2", "w3") }

func (g *generator) lease() int64 { return int64(pick(g, 0, 0, 100, 60_000)) }

func (g *generator) request() string { return pick(g, "", "", "", "", "", "", "", "q1", "q2", "q3") }

func (g *generator) bytes(s string) []byte {
	if g.dice(3) == 0 {
		return nil
	}
	return []byte(s)
}

func pick[T any](g *generator, of ...T) T { return of[g.dice(len(of))] }

func liveLeases(m *Machine) []command.Lease {
	var leases []command.Lease
	for l := range m.Leases() {
		leases = append(leases, l)
	}
	return leases
}

// toldKind draws an event that a Tell brings.
func (g *generator) toldKind() event.Kind {
	const first, second = int(event.KeysReloaded-event.MemberAdded) + 1, int(event.RestoreBroken-event.BackupBegun) + 1
	draw := g.dice(first + second)
	if draw < first {
		return event.MemberAdded + event.Kind(draw)
	}
	return event.BackupBegun + event.Kind(draw-first)
}

// apply is Apply for a decoded entry.
func (m *Machine) apply(index uint64, stamp record.Stamp, commands []command.Command) (Applied, error) {
	applied := m.beginEntry(index, stamp, len(commands))
	for i, c := range commands {
		if err := m.applyAt(&applied, i, c); err != nil {
			return Applied{}, fmt.Errorf("command %d: %w", i, err)
		}
	}
	m.endEntry(&applied)
	return applied, nil
}
