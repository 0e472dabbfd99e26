package fsm

import (
	"math/rand/v2"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// lifeLog returns a log of n entries about the times in a task's life. It also
// returns how often each of the machine's own acts came to pass in it.
func lifeLog(seed uint64, n int) ([]testEntry, map[string]int) {
	g := newGenerator(rand.New(rand.NewPCG(seed, 2)).IntN)
	m := newSmall()
	done := map[string]int{}
	log := make([]testEntry, n)
	for i := range log {
		g.index++
		g.stamp.U += int64(pick(g, 0, 10, 10, 300, 60_000, goneMS/3))
		g.stamp.T += int64(pick(g, 0, 10, 10, 300, 60_000, defaultRetentionMS/4))
		e := testEntry{Index: g.index, Stamp: g.stamp, Commands: []command.Command{g.lifeCommand(m), g.lifeCommand(m)}}
		switch {
		case i == 0:
			e.Commands[0] = command.SetLevel{Level: 1}
		case g.dice(3) == 0:
			e.Commands[1] = command.Tick{}
		}
		before := m.Stats(m.Stamp()).Counts
		known := m.gone.table.Len()
		a, err := m.apply(e.Index, e.Stamp, e.Commands)
		if err != nil {
			panic(err) // the generator made an unknown command
		}
		for _, r := range a.Results {
			done["evicted"] += r.Evicted
			if r.Gone && r.Repeated {
				done["repeated of a removed task"]++
			}
			if len(r.Submitted) > 0 && r.Submitted[0].Gone {
				done["submitted with the key of a removed task"]++
			}
			if r.Code == CodeKeyTaken {
				done["refused as a key was taken"]++
			}
		}
		after := m.Stats(m.Stamp()).Counts
		done["scheduled"] += int(max(0, after[record.StatusScheduled]-before[record.StatusScheduled]))
		done["promoted"] += int(max(0, before[record.StatusScheduled]-after[record.StatusScheduled]))
		done["cancelled"] += int(max(0, after[record.StatusCancelled]-before[record.StatusCancelled]))
		done["removed"] += max(0, m.gone.table.Len()-known)
		done["forgotten"] += max(0, known-m.gone.table.Len())
		log[i] = e
	}
	return log, done
}

// lifeCommand returns a command that a time, a key or a cancel matters to.
func (g *generator) lifeCommand(m *Machine) command.Command {
	switch g.dice(16) {
	case 0, 1, 2:
		return command.Submit{Tasks: []record.NewTask{g.lifeTask()}}
	case 3, 4:
		return g.claimNext()
	case 5:
		return command.Fail{Hold: g.lifeHold(m), Error: "no", Permanent: g.dice(3) == 0, RetryIn: g.dice(3) == 0, RetryInMS: int64(g.dice(400))}
	case 6:
		return command.Release{Hold: g.hold(m), DelayMS: int64(pick(g, 0, 0, 200))}
	case 7:
		return command.Extend{Hold: g.hold(m), Progress: g.bytes(`{"done":1}`)}
	case 8:
		return command.Cancel{ID: g.id(m)}
	case 9:
		return command.Patch{ID: g.id(m), SetPriority: g.dice(2) == 0, Priority: int32(g.dice(9)), SetRunAt: g.dice(2) == 0, RunAt: g.lifeTime(), SetLabels: g.dice(2) == 0, Labels: []record.Label{{Name: "a", Value: "b"}}[:g.dice(2)]}
	case 10, 12:
		return command.Retry{ID: g.endedID(m), AddAttempts: int32(g.dice(3))}
	case 11:
		return pick[command.Command](g, g.expire(m), g.expire(m), command.Evict{Bytes: int64(g.dice(20_000))}, command.Delete{ID: g.id(m)}, command.SetType{
			Type:     pick(g, "mail", "scan"),
			Set:      record.TypeBackoff | record.TypeMaxAttempts | record.TypeRetention,
			Settings: record.TypeSettings{Backoff: g.lifeBackoff(), LimitSet: true, MaxAttempts: int32(g.dice(4)), RetentionMS: int64(pick(g, 0, record.KeepNone, 1000))},
		})
	}
	return command.Complete{Hold: g.lifeHold(m), Result: g.bytes("1"), Submit: []record.NewTask{g.lifeTask()}[:g.dice(2)]}
}

// endedID returns the id of a task that has ended, any id if none has.
func (g *generator) endedID(m *Machine) uint64 {
	var ended []uint64
	for id, t := range m.tasks.All() {
		if t.Status.Ended() {
			ended = append(ended, id)
		}
	}
	if len(ended) == 0 {
		return g.id(m)
	}
	return pick(g, ended...)
}

// lifeHold is hold, sometimes of a removed task.
func (g *generator) lifeHold(m *Machine) command.Hold {
	if m.gone.table.Len() == 0 || g.dice(3) > 0 {
		return g.hold(m)
	}
	var holds []command.Hold
	for id, r := range m.gone.table.All() {
		holds = append(holds, command.Hold{ID: id, WorkerID: r.WorkerID, Token: r.Token})
	}
	return pick(g, holds...)
}

func (g *generator) lifeTask() record.NewTask {
	n := record.NewTask{
		Type:         pick(g, "mail", "scan"),
		Params:       []byte(pick(g, `1`, `2`)),
		MaxAttempts:  pick[int32](g, record.DefaultAttempts, 0, 1, 3),
		Key:          pick(g, "", "k1", "k2"),
		Backoff:      g.lifeBackoff(),
		RetentionMS:  int64(pick(g, 0, 0, 200, record.KeepNone, record.KeepForever)),
		UniqueActive: g.dice(3) > 0,
		Group:        pick(g, "", "", "", "g"),
	}
	switch g.dice(5) {
	case 0:
		n.RunAt = g.lifeTime()
	case 1:
		n.DelayMS = int64(1 + g.dice(1000))
	case 2:
		n.ExpiresAt = g.lifeTime()
	}
	return n
}

func (g *generator) lifeBackoff() *record.Backoff {
	if g.dice(3) > 0 {
		return nil
	}
	return &record.Backoff{InitialMS: 100, MaxMS: 1000, Factor: 1_700_000, Jitter: 300_000}
}

// lifeTime returns a time by T in the past or the future.
func (g *generator) lifeTime() int64 { return g.stamp.T + int64(pick(g, -5, 100, 500, 100_000)) }

// A machine restored from a snapshot taken after any entry makes the same choices as one
// that applied all entries, including retention, eviction, keys and backoff.
func TestTimes_RestoreEqualsReplay(t *testing.T) {
	t.Parallel()
	total := map[string]int{}
	for seed := range uint64(8) {
		log, done := lifeLog(seed, 150)
		for what, n := range done {
			total[what] += n
		}
		r := newReplay(t, log)
		m := newSmall()
		for prefix := range len(r.log) {
			r.checkRestore(t, m, prefix)
			applyLog(t, m, r.log[prefix:prefix+1])
			mustCheck(t, m)
		}
	}
	for _, what := range []string{
		"evicted", "repeated of a removed task", "submitted with the key of a removed task", "refused as a key was taken",
		"scheduled", "promoted", "cancelled", "removed", "forgotten",
	} {
		if total[what] == 0 {
			t.Errorf("the logs had nothing of this: %s", what)
		}
	}
}
