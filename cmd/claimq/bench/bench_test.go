package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNumbersAfter(t *testing.T) {
	t.Parallel()
	body := []byte(`{"tasks":[{"id":7,"worker_id":null,"claim_token":12},{"id":8,"claim_token":null},{"id":9007199254740991}]}`)
	if d := cmp.Diff([]uint64{7, 8, 9007199254740991}, numbersAfter(nil, body, keyID, 9)); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]uint64{7}, numbersAfter(nil, body, keyID, 1)); d != "" {
		t.Errorf("one id (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]uint64{12}, numbersAfter(nil, body, keyToken, 9)); d != "" {
		t.Errorf("tokens (-want +got):\n%s", d)
	}
}

// A task is reported lost if it was submitted and not done, and doubled if it was done more than once.
func TestLedger(t *testing.T) {
	t.Parallel()
	a, b := &ledger{submitted: []uint64{1, 3, 4}, completed: []uint64{2, 1}}, &ledger{submitted: []uint64{2}, completed: []uint64{4, 2}}
	if done, doubled, lost := totals([]*ledger{a, b}); done != 3 || doubled != 1 || lost != 1 {
		t.Errorf("done %d, doubled %d, lost %d; want 3, 1, 1", done, doubled, lost)
	}
}

func TestLatencies(t *testing.T) {
	t.Parallel()
	a, b := &timings{}, &timings{counting: true}
	a.add(callClaim, time.Hour) // not counting yet
	for ms := 1; ms <= 100; ms++ {
		b.add(callClaim, time.Duration(ms)*time.Millisecond)
	}
	want := []CallLatency{{Call: "claim", Count: 100, P50: 51, P95: 96, P99: 100, Max: 100}}
	if d := cmp.Diff(want, latencies([]*timings{a, b})); d != "" {
		t.Errorf("latencies (-want +got):\n%s", d)
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	good := Config{Mode: Lifecycle, Conns: 1, Tasks: 1, Payload: 2, Batch: 1, Endpoints: []string{"http://127.0.0.1:1"}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"mode":     func(c *Config) { c.Mode = "x" },
		"conns":    func(c *Config) { c.Conns = ConnsMax + 1 },
		"tasks":    func(c *Config) { c.Tasks = 0 },
		"payload":  func(c *Config) { c.Payload = 1 },
		"batch":    func(c *Config) { c.Batch = BatchMax + 1 },
		"4 MiB":    func(c *Config) { c.Batch, c.Payload = 1000, 1<<20 },
		"chain":    func(c *Config) { c.Mode, c.Batch = Chain, 2 },
		"client":   func(c *Config) { c.Client, c.Mode = true, Chain },
		"endpoint": func(c *Config) { c.Endpoints = nil },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error is %v, want it to name %s", err, name)
		}
	}
}
