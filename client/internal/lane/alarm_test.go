package lane

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// clock is an alarm that records when it rang, in milliseconds.
type clock struct {
	mu    sync.Mutex
	alarm Alarm
	rang  []int
	begun time.Time
}

func (c *clock) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alarm.Rang()
	c.rang = append(c.rang, int(time.Since(c.begun).Milliseconds()))
}

func (c *clock) set(ms ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range ms {
		c.alarm.Set(c.begun.Add(time.Duration(n)*time.Millisecond), c.ring)
	}
}

// An alarm rings once, at the earliest time since it last rang, and not after it was stopped.
func TestAlarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &clock{begun: time.Now()}
		wait := func(ms int) {
			<-time.After(time.Until(c.begun.Add(time.Duration(ms) * time.Millisecond)))
			synctest.Wait()
		}
		c.set(30, 10, 20)
		wait(15)
		c.set(40, 50)
		wait(60)
		c.set(80)
		c.mu.Lock()
		c.alarm.Set(time.Time{}, c.ring)
		c.alarm.Stop()
		if c.alarm.IsSet() {
			t.Error("it is set after it was stopped")
		}
		c.mu.Unlock()
		wait(100)
		c.set(110)
		wait(120)
		if len(c.rang) != 3 || c.rang[0] != 10 || c.rang[1] != 40 || c.rang[2] != 110 {
			t.Errorf("it rang after %v ms, want 10, 40 and 110", c.rang)
		}
	})
}
