package repeat

import (
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// judged is a row of the table of Judge.
type judged struct {
	status int
	code   wire.Code
	want   Verdict
}

func judgedRows() []judged {
	return []judged{
		{200, "", Unknown}, // a proxy's page
		{307, "", Unknown},
		{302, "", Unknown},
		{400, wire.CodeInvalidRequest, Settled},
		{404, "", Unknown},
		{404, wire.CodeTaskNotFound, Settled},
		{409, wire.CodeStaleClaim, Settled},
		{429, wire.CodeRateLimited, Unwritten},
		{429, "", Unknown},
		{500, wire.CodeInternal, Settled},
		{500, "", Unknown},
		{502, "", Unknown},
		{503, "", Unknown},
		{503, wire.CodeNoLeader, Unwritten},
		{503, wire.CodeOverloaded, Unwritten},
		{503, wire.CodeShuttingDown, Unwritten},
		{504, wire.CodeOutcomeUnknown, Unknown},
		{504, "", Unknown},
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range judgedRows() {
		if got := Judge(c.status, c.code); got != c.want {
			t.Errorf("status %d, code %q: verdict %d, want %d", c.status, c.code, got, c.want)
		}
	}
	if Broken(true) != Unknown || Broken(false) != Unwritten {
		t.Error("only what was sent may have been done")
	}
}

// nexted is a row of the table of Call.Next.
type nexted struct {
	name    string
	call    Call
	v       Verdict
	want    Action
	doubted bool
}

func nextedRows() []nexted {
	return []nexted{
		{"answered", Call{Mutation: true}, Settled, Take, false},
		{"not written", Call{Mutation: true}, Unwritten, Wait, false},
		{"unknown, not repeatable", Call{Mutation: true}, Unknown, GiveUp, true},
		{"unknown, repeatable", Call{Mutation: true, Repeatable: true}, Unknown, Wait, true},
		{"an unknown read", Call{}, Unknown, Wait, false},
	}
}

// A mutation that may have been done is repeated only if the server recognizes the repeat.
func TestCall_Next(t *testing.T) {
	t.Parallel()
	for _, c := range nextedRows() {
		got := c.call.Next(c.v)
		if got != c.want || c.call.Doubted != c.doubted || c.call.Tries != 1 {
			t.Errorf("%s: action %d, doubted %v; want %d, %v", c.name, got, c.call.Doubted, c.want, c.doubted)
		}
	}
}

func TestCall_redirects(t *testing.T) {
	t.Parallel()
	var c Call
	for round := range 2 { // the count starts over after a pause
		for range RedirectsMax {
			if c.Next(Redirected) != Follow {
				t.Fatalf("round %d: not followed", round)
			}
		}
		if c.Next(Redirected) != Wait {
			t.Fatalf("round %d: followed for ever", round)
		}
	}
	if c.Next(Redirected) != Follow || c.Lost() != Wait || c.Next(Redirected) != Follow {
		t.Error("a redirect that leads nowhere counts")
	}
}

// paused is a row of the table of Call.Pause: after this number of tries, without the random
// share.
type paused struct {
	tries int
	want  time.Duration
}

func pausedRows() []paused {
	return []paused{
		{1, 20 * time.Millisecond}, {2, 40 * time.Millisecond}, {6, 640 * time.Millisecond}, {7, time.Second}, {500, time.Second},
	}
}

func TestCall_Pause(t *testing.T) {
	t.Parallel()
	none := func(time.Duration) time.Duration { return 0 }
	most := func(n time.Duration) time.Duration { return n - 1 }
	for _, row := range pausedRows() {
		tries, want := row.tries, row.want
		c := Call{Tries: tries}
		if got := c.Pause(0, none); got != want {
			t.Errorf("after %d tries %v, want %v", tries, got, want)
		}
		if got := c.Pause(0, most); got != want/2 {
			t.Errorf("after %d tries at least %v, want %v", tries, got, want/2)
		}
		if got := c.Pause(3*time.Second, none); got != want+3*time.Second {
			t.Errorf("after %d tries, asked for 3 s: %v", tries, got)
		}
	}
}

// ended is a row of the table of ClaimEnd: for a lease of 10 s, answered to a try that was
// sent 2 s after the first.
type ended struct {
	name     string
	asked    time.Duration
	repeated bool
	want     time.Duration // from the first try
}

func endedRows() []ended {
	return []ended{
		{"first answer", 10 * time.Second, false, 2*time.Second + 9990*time.Millisecond},
		{"repeated", 10 * time.Second, true, 9990 * time.Millisecond},
		{"repeated, the server's own lease", 0, true, 2*time.Second + 9990*time.Millisecond},
	}
}

func TestClaimEnd(t *testing.T) {
	t.Parallel()
	first := time.Unix(100, 0)
	sent := first.Add(2 * time.Second)
	for _, c := range endedRows() {
		if got := ClaimEnd(first, sent, 10*time.Second, c.asked, c.repeated).Sub(first); got != c.want {
			t.Errorf("%s: ends after %v, want %v", c.name, got, c.want)
		}
	}
}
