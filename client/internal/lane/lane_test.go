package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// road is a lane whose requests are answered by the test.
type road struct {
	*Lane[string]
	begun sync.WaitGroup
	deaf  bool // a request continues after its ctx has ended

	mu   sync.Mutex
	sent []*request
}

// request is a shared request.
type request struct {
	ctx     context.Context
	calls   []*Call[string]
	answer  chan struct{} // closed by the test
	tooMuch bool
}

func newRoad() *road {
	r := &road{}
	r.Lane = New(r.send, r.begun.Go)
	return r
}

func (r *road) send(ctx context.Context, calls []*Call[string]) (tooMuch bool) {
	q := &request{ctx: ctx, calls: calls, answer: make(chan struct{})}
	r.mu.Lock()
	r.sent = append(r.sent, q)
	r.mu.Unlock()
	ended := ctx.Done()
	if r.deaf {
		ended = nil
	}
	select {
	case <-q.answer:
	case <-ended:
	}
	for _, c := range calls {
		c.Result = "answer to " + string(c.Item)
	}
	return q.tooMuch
}

// items returns the items of the n-th request.
func (r *road) items(n int) (items []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < len(r.sent) {
		for _, c := range r.sent[n].calls {
			items = append(items, string(c.Item))
		}
	}
	return items
}

// call returns a call with the item.
func (r *road) call(item string) *Call[string] {
	c := r.NewCall()
	c.Item, c.Weight = []byte(item), len(item)
	return c
}

// share begins calls with these items, each in its own goroutine, and returns once they wait.
func (r *road) share(ctx context.Context, items ...string) (errs []chan error) {
	for _, item := range items {
		err := make(chan error, 1)
		go func() {
			c := r.call(item)
			e := r.Share(ctx, c)
			if e == nil {
				if c.Result != "answer to "+item {
					e = fmt.Errorf("%s has %q", item, c.Result)
				}
				r.Recycle(c)
			}
			err <- e
		}()
		errs = append(errs, err)
		synctest.Wait()
	}
	return errs
}

func (r *road) want(t *testing.T, n int, items ...string) {
	t.Helper()
	synctest.Wait()
	if got := r.items(n); !slices.Equal(got, items) {
		t.Fatalf("request %d has %q, want %q", n, got, items)
	}
}

// bubble runs a test with a road, and answers all requests at its end.
func bubble(t *testing.T, test func(t *testing.T, r *road)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		test(t, r)
		for n := 0; ; n++ {
			synctest.Wait()
			if n == len(r.sent) {
				break
			}
			select {
			case <-r.sent[n].answer:
			default:
				close(r.sent[n].answer)
			}
		}
		r.begun.Wait()
		r.Lane.mu.Lock()
		defer r.Lane.mu.Unlock()
		if r.out != 0 || r.overdue != 0 || len(r.queue) != 0 {
			t.Errorf("at the end %d requests are out, %d overdue, %d calls wait", r.out, r.overdue, len(r.queue))
		}
		if len(r.groups) != 0 || r.clock.IsSet() {
			t.Errorf("at the end %d groups are out, the alarm is set: %v", len(r.groups), r.clock.IsSet())
		}
	})
}

func check(t *testing.T, errs []chan error, want error) {
	t.Helper()
	for i, err := range errs {
		if got := <-err; !errors.Is(got, want) {
			t.Errorf("call %d: %v, want %v", i, got, want)
		}
	}
}

// A few calls go alone, but none while a shared request is out.
func TestLane_Alone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		for i := range AloneMax {
			if !r.Alone() {
				t.Fatalf("call %d may not go alone", i)
			}
		}
		if r.Alone() {
			t.Error("one call too many goes alone")
		}
		r.Left()
		if !r.Alone() {
			t.Error("a call may not go alone although one has ended")
		}
		for range AloneMax {
			r.Left()
		}
		calls := r.share(t.Context(), "a")
		if r.Alone() {
			t.Error("a call goes alone beside a shared request")
		}
		close(r.sent[0].answer)
		check(t, calls, nil)
		synctest.Wait()
		if !r.Alone() {
			t.Error("no call may go alone when the shared request is over")
		}
	})
}

// While a request is out calls queue, and the next request takes all of them in order.
func TestLane_takesTheQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		first := r.share(t.Context(), "a")
		rest := r.share(t.Context(), "b", "c", "d")
		r.want(t, 0, "a")
		r.want(t, 1)
		close(r.sent[0].answer)
		check(t, first, nil)
		r.want(t, 1, "b", "c", "d")
		close(r.sent[1].answer)
		check(t, rest, nil)
	})
}

// Callers that call again as soon as they are answered do not fall into two halves, of which each waits while the
// other's request is out.
func TestLane_gathers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, rounds = 64, 50
		requests := 0
		var begun, done sync.WaitGroup
		l := New(func(context.Context, []*Call[string]) bool {
			requests++ // one at a time is out
			<-time.After(time.Millisecond)
			return false
		}, begun.Go)
		for range callers {
			done.Go(func() {
				for range rounds {
					c := l.NewCall()
					if err := l.Share(t.Context(), c); err != nil {
						t.Error(err)
					}
					l.Recycle(c)
				}
			})
		}
		done.Wait()
		begun.Wait()
		// Halves take exactly twice as many requests as there are rounds. How many callers are let in depends on the
		// scheduler.
		if most := 2 * rounds * 19 / 20; requests > most {
			t.Errorf("%d calls of each of %d callers take %d requests, want at most %d", rounds, callers, requests, most)
		}
	})
}

// A call whose caller leaves the queue is not sent, and neither is one whose context had ended before.
func TestLane_leavesTheQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		r.share(t.Context(), "a")
		ctx, cancel := context.WithCancel(t.Context())
		b := r.share(ctx, "b")
		c := r.share(t.Context(), "c")
		cancel()
		check(t, b, ErrQueued)
		check(t, r.share(ctx, "d"), ErrQueued)
		close(r.sent[0].answer)
		r.want(t, 1, "c")
		close(r.sent[1].answer)
		check(t, c, nil)
		check(t, r.share(ctx, "e"), ErrQueued)
		r.want(t, 2)
	})
}

// Close ends the calls in the queue and later ones; the request that is out continues.
func TestLane_Close(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		a := r.share(t.Context(), "a")
		b := r.share(t.Context(), "b")
		r.Close()
		check(t, b, ErrClosed)
		close(r.sent[0].answer)
		check(t, a, nil)
		check(t, r.share(t.Context(), "c"), ErrClosed)
		r.want(t, 1)
	})
}

// A caller leaves at its own time, whether its call is in the queue or sent.
func TestLane_Until(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		r.deaf = true // otherwise its request may end before the call leaves it
		until := func(d time.Duration) chan error {
			left := make(chan error, 1)
			c := r.call("x")
			c.Until = time.Now().Add(d)
			go func() { left <- r.Share(t.Context(), c) }()
			synctest.Wait()
			return left
		}
		sent, queued := until(30*time.Millisecond), until(10*time.Millisecond)
		begun := time.Now()
		if err := <-queued; !errors.Is(err, ErrQueued) || time.Since(begun) != 10*time.Millisecond {
			t.Errorf("in the queue: %v after %v", err, time.Since(begun))
		}
		if err := <-sent; !errors.Is(err, ErrSent) || time.Since(begun) != 30*time.Millisecond {
			t.Errorf("sent: %v after %v", err, time.Since(begun))
		}
		if d, ok := r.sent[0].ctx.Deadline(); !ok || time.Since(d) != 0 {
			t.Errorf("the request has the deadline %v, %v", d, ok)
		}
		r.want(t, 1)
	})
}

// When a watched context ends its callers leave, whether their calls are in the queue or sent, and the others stay.
func TestLane_Watch(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		r.deaf = true // otherwise a request may end before the calls leave it
		ctx, end := context.WithCancel(t.Context())
		defer r.Watch(ctx)()
		other, endOther := context.WithCancel(t.Context())
		defer endOther()
		defer r.Watch(other)()
		type key struct{}
		value := context.WithValue(ctx, key{}, 1) // it ends with the same channel
		first := r.share(t.Context(), "a")
		sent := append(r.share(ctx, "b"), r.share(value, "c")...)
		stays := r.share(other, "d")
		close(r.sent[0].answer)
		check(t, first, nil)
		r.want(t, 1, "b", "c", "d")
		queued := r.share(ctx, "e")
		later := r.share(other, "f")
		end()
		check(t, sent, ErrSent)
		check(t, queued, ErrQueued)
		check(t, r.share(value, "g"), ErrQueued)
		if err := r.sent[1].ctx.Err(); err != nil {
			t.Errorf("the request has ended with some of its callers: %v", err)
		}
		close(r.sent[1].answer)
		check(t, stays, nil)
		r.want(t, 2, "f")
		endOther()
		check(t, later, ErrSent)
		if r.sent[2].ctx.Err() == nil {
			t.Error("the request goes on although its only caller has left")
		}
	})
}

// No caller misses the end of a watched context, whenever that comes.
func TestLane_Watch_ends(t *testing.T) {
	t.Parallel()
	for range 200 {
		bubble(t, func(t *testing.T, r *road) {
			r.deaf = true
			ctx, end := context.WithCancel(t.Context())
			defer r.Watch(ctx)()
			var left sync.WaitGroup
			for range 8 {
				left.Go(func() {
					if err := r.Share(ctx, r.call("x")); !errors.Is(err, ErrQueued) && !errors.Is(err, ErrSent) {
						t.Error(err)
					}
				})
			}
			left.Go(end)
			left.Wait()
		})
	}
}

// A caller whose context has a deadline leaves when the context has ended, because that says why.
func TestLane_deadlineOfTheContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		r.deaf = true // otherwise their request may end before the calls leave it
		why := errors.New("why")
		var left sync.WaitGroup
		for range 100 {
			left.Go(func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, why)
				defer cancel()
				c := r.call("x")
				c.Until = time.Now().Add(time.Second)
				if err := r.Share(ctx, c); err == nil || !errors.Is(context.Cause(ctx), why) {
					t.Errorf("%v, and the context has ended with %v", err, context.Cause(ctx))
				}
			})
		}
		left.Wait()
	})
}

// One alarm serves all callers: each leaves at its own time, in whatever order they came, and those without a time
// stay.
func TestLane_alarm(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		begun := time.Now()
		until := func(ms int) (at chan int) {
			at = make(chan int, 1)
			c := r.call("x")
			if ms > 0 {
				c.Until = begun.Add(time.Duration(ms) * time.Millisecond)
			}
			go func() {
				_ = r.Share(t.Context(), c)
				at <- int(time.Since(begun).Milliseconds())
			}()
			synctest.Wait()
			return at
		}
		first := until(0) // the request that is out; it is overdue at 50 ms, and then the next is sent
		times := []int{30, 10, 50, 20, 0, 90, 80, 40, 85}
		left := make([]chan int, len(times))
		for i, ms := range times {
			left[i] = until(ms)
		}
		<-time.After(70 * time.Millisecond)
		synctest.Wait()
		close(r.sent[0].answer)
		<-time.After(30 * time.Millisecond)
		close(r.sent[1].answer)
		for i, want := range times {
			if got := <-left[i]; got != want && (want != 0 || got != 100) {
				t.Errorf("the caller with %d ms left after %d ms", want, got)
			}
		}
		if got := <-first; got != 70 {
			t.Errorf("the first call was answered after %d ms", got)
		}
	})
}

// A request continues when a caller leaves, and ends when all have left.
func TestLane_allHaveLeft(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		r.share(t.Context(), "a")
		ctxB, leaveB := context.WithCancel(t.Context())
		b := r.share(ctxB, "b")
		ctxC, leaveC := context.WithCancel(t.Context())
		c := r.share(ctxC, "c")
		close(r.sent[0].answer)
		r.want(t, 1, "b", "c")
		leaveB()
		check(t, b, ErrSent)
		if err := r.sent[1].ctx.Err(); err != nil {
			t.Errorf("the request has ended with its first caller: %v", err)
		}
		leaveC()
		check(t, c, ErrSent)
		synctest.Wait()
		if r.sent[1].ctx.Err() == nil {
			t.Error("the request goes on although all callers have left")
		}
	})
}

// The deadline of a request is the latest of its calls; if one call has no deadline, the request has none.
func TestLane_latestDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		long, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		r.share(t.Context(), "a")
		b := r.share(long, "b")
		r.share(short, "c")
		close(r.sent[0].answer)
		r.want(t, 1, "b", "c")
		if d, ok := r.sent[0].ctx.Deadline(); ok {
			t.Errorf("without a deadline of its call the request has %v", d)
		}
		want, _ := long.Deadline()
		if d, ok := r.sent[1].ctx.Deadline(); !ok || !d.Equal(want) {
			t.Errorf("the deadline is %v, %v; want the later one, %v", d, ok, want)
		}
		<-time.After(20 * time.Millisecond)
		if r.sent[1].ctx.Err() != nil {
			t.Error("the request ended at the earlier deadline")
		}
		<-b[0] // the request and its caller end at the same time
	})
}

// An overdue request lets a second one go in parallel, but no third. When it is over, there is one again.
func TestLane_overdue(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		r.share(t.Context(), "a")
		b := r.share(t.Context(), "b")
		<-time.After(overdueMin - time.Millisecond)
		r.want(t, 1)
		<-time.After(2 * time.Millisecond)
		r.want(t, 1, "b")
		c := r.share(t.Context(), "c")
		<-time.After(10 * overdueMin)
		r.want(t, 2)
		close(r.sent[1].answer) // the second takes the queue, because the first is still out
		check(t, b, nil)
		r.want(t, 2, "c")
		d := r.share(t.Context(), "d")
		close(r.sent[0].answer)
		r.want(t, 3) // one is out, and not overdue yet
		close(r.sent[2].answer)
		check(t, c, nil)
		r.want(t, 3, "d")
		close(r.sent[3].answer)
		check(t, d, nil)
	})
}

// If requests usually take long, they are overdue later.
func TestLane_usual(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		for n := range 20 {
			r.share(t.Context(), "a")
			<-time.After(40 * time.Millisecond)
			close(r.sent[n].answer)
			synctest.Wait()
		}
		r.share(t.Context(), "b")
		r.share(t.Context(), "c")
		<-time.After(150 * time.Millisecond)
		r.want(t, 21)
		<-time.After(11 * time.Millisecond)
		r.want(t, 21, "c")
	})
}

// After a request that was too large the next ones are smaller, and grow again.
func TestLane_tooMuch(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *road) {
		r.share(t.Context(), "a")
		r.share(t.Context(), "b", "c", "d", "e")
		r.sent[0].tooMuch = true // it has a single call, so it cannot become smaller
		close(r.sent[0].answer)
		r.want(t, 1, "b")
		close(r.sent[1].answer)
		r.want(t, 2, "c", "d")
		r.share(t.Context(), "f", "g", "h", "i", "j", "k")
		r.sent[2].tooMuch = true
		close(r.sent[2].answer)
		r.want(t, 3, "e")
		close(r.sent[3].answer)
		r.want(t, 4, "f", "g")
		close(r.sent[4].answer)
		r.want(t, 5, "h", "i", "j")
	})
}

// A request is limited in calls and bytes, but can always hold one call.
func TestFit(t *testing.T) {
	t.Parallel()
	queue := func(n, weight int) []*Call[int] {
		calls := make([]*Call[int], n)
		for i := range calls {
			calls[i] = &Call[int]{Weight: weight}
		}
		return calls
	}
	for _, c := range []struct{ n, weight, want int }{
		{0, 1, 0},
		{CallsMax, 1, CallsMax},
		{CallsMax + 1, 1, CallsMax},
		{8, BytesMax / 8, 8},
		{9, BytesMax / 8, 8},
		{2, BytesMax + 1, 1},
	} {
		if got := fit(queue(c.n, c.weight), CallsMax); got != c.want {
			t.Errorf("of %d calls of %d bytes a request has %d, want %d", c.n, c.weight, got, c.want)
		}
	}
}
