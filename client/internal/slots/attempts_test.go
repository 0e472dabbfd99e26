package slots

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// attempt counts calls of its methods.
type attempt struct {
	state                        State
	interrupted, extended, letGo atomic.Int32
}

func (a *attempt) State() *State  { return &a.state }
func (a *attempt) Interrupt()     { a.interrupted.Add(1) }
func (a *attempt) Extend()        { a.extended.Add(1) }
func (a *attempt) StopExtending() { a.letGo.Add(1) }

// A handler either returns or is abandoned, never both.
func TestLines_Abandon(t *testing.T) {
	t.Parallel()
	var l Lines[*attempt]
	var a, b, c, late attempt
	for _, each := range []*attempt{&a, &b, &c} {
		if !l.Begin(each, time.Now().Add(time.Hour)) {
			t.Fatal("it does not begin")
		}
	}
	if !l.Returned(&a) || l.Returned(&a) {
		t.Error("a handler that has returned has not, or does so twice")
	}
	if left := l.Abandon(); !slices.Equal(left, []*attempt{&b, &c}) {
		t.Errorf("%d are left, want the two that run", len(left))
	}
	if l.Returned(&b) || len(l.Abandon()) != 0 {
		t.Error("a handler that was left returns, or is left again")
	}
	if l.Begin(&late, time.Now()) {
		t.Error("a handler begins that nobody waits for")
	}
	l.End(&b)
	l.End(&a)
	l.End(&c)
	if len(l.attempts) != 0 || l.clock.IsSet() {
		t.Errorf("at the end there are %d attempts, and the alarm is set: %v", len(l.attempts), l.clock.IsSet())
	}
}

// StopExtending works while the handler runs, and its caller is waited for.
func TestLines_StopExtending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Lines[*attempt]
		var runs, returned attempt
		l.Begin(&runs, time.Now().Add(time.Hour))
		l.Begin(&returned, time.Now().Add(time.Hour))
		l.Returned(&returned)
		if !l.StopExtending(&runs) || l.StopExtending(&returned) {
			t.Error("let go is not who runs, or who does not")
		}
		done := false
		go func() { l.Wait(); done = true }()
		if synctest.Wait(); done {
			t.Error("nobody waits for who let go")
		}
		l.Done()
		if synctest.Wait(); !done {
			t.Error("who let go is waited for though that is done")
		}
		if l.Abandon(); l.StopExtending(&runs) || runs.letGo.Load() != 1 || returned.letGo.Load() != 0 {
			t.Errorf("let go: one that was left %d times, one that has returned %d", runs.letGo.Load(), returned.letGo.Load())
		}
		l.End(&runs)
		l.End(&returned)
	})
}

// Interrupt affects running handlers and those that begin later, but not those that have returned.
func TestLines_Interrupt(t *testing.T) {
	t.Parallel()
	var l Lines[*attempt]
	var runs, returned, late attempt
	l.Begin(&runs, time.Now().Add(time.Hour))
	l.Begin(&returned, time.Now().Add(time.Hour))
	l.Returned(&returned)
	l.Interrupt()
	l.Begin(&late, time.Now().Add(time.Hour))
	if r, d, n := runs.interrupted.Load(), returned.interrupted.Load(), late.interrupted.Load(); r != 1 || d != 0 || n != 1 {
		t.Errorf("interrupted: one that runs %d times, one that has returned %d, one that began later %d", r, d, n)
	}
	for _, each := range []*attempt{&runs, &returned, &late} {
		l.End(each)
	}
}

// Each claim is extended once its time has come, even if its handler has returned, but not after its attempt has
// ended.
func TestLines_extends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Lines[*attempt]
		begun := time.Now()
		at := func(s int) time.Time { return begun.Add(time.Duration(s) * time.Second) }
		var first, second, third, ended attempt
		l.Begin(&second, at(20))
		l.Begin(&first, at(10))
		l.Begin(&ended, at(15))
		l.Begin(&third, at(30))
		l.Returned(&third)
		counts := func() []int32 {
			synctest.Wait()
			return []int32{first.extended.Load(), second.extended.Load(), third.extended.Load(), ended.extended.Load()}
		}
		<-time.After(12 * time.Second)
		if got := counts(); !slices.Equal(got, []int32{1, 0, 0, 0}) {
			t.Errorf("after 12 s: %v", got)
		}
		l.End(&ended)
		<-time.After(10 * time.Second)
		if got := counts(); !slices.Equal(got, []int32{1, 1, 0, 0}) {
			t.Errorf("after 22 s: %v", got)
		}
		<-time.After(time.Minute)
		if got := counts(); !slices.Equal(got, []int32{1, 1, 1, 0}) {
			t.Errorf("at the end: %v", got)
		}
	})
}
