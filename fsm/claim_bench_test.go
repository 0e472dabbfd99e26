package fsm

import (
	"slices"
	"testing"
	"time"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// BenchmarkClaimRatio compares a claim among many tasks of 1,000 types with one on an empty
// system that has a round of tasks of one type: of any type ("ratio"), and of the same
// types, one of which exists there ("same-ratio"). The rounds alternate, so that other load
// on the machine slows all of them; it reports medians of the rounds, and ns/op means
// nothing. A claim is a node's work on a log entry, from bytes to answer. "cold" is the
// cost of finding a task for a change, one of all against one of 256, which no index can
// save.
func BenchmarkClaimRatio(b *testing.B) {
	small := newBenchState(b, benchRound, 1)
	eachSize(b, func(b *testing.B, tasks int) {
		types := min(1000, tasks/benchRound)
		large := newBenchState(b, tasks, types)
		compare := func(name string, names ...string) {
			b.Run("types="+name, func(b *testing.B) { small.compareClaims(b, large, names) })
		}
		listed := make([]string, min(100, types))
		for i := range listed {
			listed[i] = typeName(i)
		}
		b.Run("cold", func(b *testing.B) { small.compareEdits(b, large) })
		compare("1", listed[0])
		compare("5", listed[:min(5, types)]...)
		compare("100", listed...)
		compare("any")
		set := func(set record.TypeFields, settings record.TypeSettings) {
			large.apply(b, command.SetType{Type: listed[0], Set: set, Settings: settings})
		}
		set(record.TypePaused, record.TypeSettings{Paused: true})
		compare("any/head=paused")
		compare("5/head=paused", listed[:min(5, types)]...)
		set(record.TypePaused, record.TypeSettings{})
		set(record.TypeMaxClaimed, record.TypeSettings{MaxClaimed: 1})
		large.apply(b, command.ClaimNext{WorkerID: "holder", Types: listed[:1], Limit: 1})
		compare("any/head=limited")
		compare("5/head=limited", listed[:min(5, types)]...)
		rare := &benchState{m: New()}
		rare.apply(b, command.SetLevel{Level: record.FeatureLevel})
		for range benchRound {
			rare.apply(b, command.Submit{Tasks: []record.NewTask{{Type: "rare", Params: []byte("1")}}})
			large.apply(b, command.Submit{Tasks: []record.NewTask{{Type: "rare", Params: []byte("1")}}})
		}
		b.Run("types=rare", func(b *testing.B) { rare.compareClaims(b, large, []string{"rare"}) })
	})
}

// BenchmarkClaimAny compares claims of any type, of 1,000, with claims of 100 listed ones:
// at random, by attempts left, and the lowest priority first. The rounds alternate; "ratio"
// compares their medians.
func BenchmarkClaimAny(b *testing.B) {
	eachSize(b, func(b *testing.B, tasks int) {
		types := min(1000, tasks/benchRound)
		s := newBenchState(b, tasks, types)
		listed := make([]string, min(100, types))
		for i := range listed {
			listed[i] = typeName(i)
		}
		for name, c := range map[string]command.ClaimNext{
			"random":          {SortBy: command.SortRandom},
			"attempts":        {MoreAttempts: 1},
			"random,attempts": {SortBy: command.SortRandom, MoreAttempts: 1},
			"asc":             {Ascending: true},
		} {
			b.Run("by="+name, func(b *testing.B) {
				var few, many []time.Duration
				c.WorkerID, c.Limit = "worker-1", 1
				for range b.N {
					c.Types = listed
					few = append(few, s.timeRound(b, c))
					c.Types = nil
					many = append(many, s.timeRound(b, c))
				}
				reportRatio(b, few, many)
			})
		}
	})
}

// compareClaims reports what a claim of the types costs in large and in s, and one
// of any type in s.
func (s *benchState) compareClaims(b *testing.B, large *benchState, types []string) {
	var few, same, many []time.Duration
	rounds := []func(){
		func() { few = append(few, s.timeClaims(b, nil)) },
		func() { same = append(same, s.timeClaims(b, types)) },
		func() { many = append(many, large.timeClaims(b, types)) },
	}
	for range b.N {
		for _, round := range rounds {
			round()
		}
		slices.Reverse(rounds) // what comes behind large finds the caches cold
	}
	reportRatio(b, few, many)
	b.ReportMetric(float64(median(same))/benchRound, "same-ns")
	b.ReportMetric(float64(median(many))/float64(median(same)), "same-ratio")
}

// timeClaims returns how long a round of claims takes, and puts others in place of
// the claimed tasks.
func (s *benchState) timeClaims(b *testing.B, types []string) time.Duration {
	return s.timeRound(b, command.ClaimNext{WorkerID: "worker-1", Types: types, Limit: 1})
}

// timeRound is timeClaims of any claim of one task.
func (s *benchState) timeRound(b *testing.B, c command.ClaimNext) time.Duration {
	claimed, entries := make([]*record.Task, benchRound), make([][]byte, benchRound)
	for i := range entries {
		entries[i] = s.appendEntry(nil, s.index+1+uint64(i), c)
	}
	start := b.Elapsed()
	for i := range claimed {
		claimed[i] = s.applyEntry(b, entries[i]).Claims[0].Task
	}
	took := b.Elapsed() - start
	for _, t := range claimed {
		s.apply(b, command.Complete{Hold: command.Hold{ID: t.ID, WorkerID: "worker-1", Token: t.Token}})
		s.apply(b, command.Delete{ID: t.ID})
		s.apply(b, command.Submit{Tasks: []record.NewTask{{Type: t.Type, Params: t.Params, ShareKey: t.Opts().ShareKey}}})
	}
	return took
}

// compareEdits reports what finding some tasks costs, to change them.
func (s *benchState) compareEdits(b *testing.B, large *benchState) {
	var few, many []time.Duration
	dice := uint64(1)
	for range b.N {
		few = append(few, s.timeEdits(b, &dice))
		many = append(many, large.timeEdits(b, &dice))
	}
	reportRatio(b, few, many)
}

// timeEdits returns how long a round of edits takes, and lets the tasks rest again.
func (s *benchState) timeEdits(b *testing.B, dice *uint64) time.Duration {
	first, _ := s.m.tasks.First()
	ids := make([]uint64, benchRound)
	for i := range ids {
		*dice = *dice*6364136223846793005 + 1442695040888963407
		ids[i] = first + (*dice>>33)%uint64(s.m.tasks.Len())
	}
	start := b.Elapsed()
	for _, id := range ids {
		s.m.tasks.Edit(id)
	}
	took := b.Elapsed() - start
	for _, id := range ids {
		s.m.tasks.Rest(id)
	}
	return took
}

// reportRatio reports the medians of the rounds, and of the quickest ones, which other work on the
// machine slows least, the ratio of their tenths.
func reportRatio(b *testing.B, few, many []time.Duration) {
	b.ReportMetric(float64(median(few))/benchRound, "few-ns")
	b.ReportMetric(float64(median(many))/benchRound, "many-ns")
	b.ReportMetric(float64(median(many))/float64(median(few)), "ratio")
	b.ReportMetric(float64(many[len(many)/10])/float64(few[len(few)/10]), "tenth-ratio") // median has sorted them
}

// median returns the median of the rounds, which it sorts.
func median(rounds []time.Duration) time.Duration {
	slices.Sort(rounds)
	return rounds[len(rounds)/2]
}
