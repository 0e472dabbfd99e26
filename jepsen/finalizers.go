package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/recorder"
)

// finalizersConfig says how many contend for how many parents.
type finalizersConfig struct {
	binary     string
	parents    int
	finalizers int
	direct     int // further parents, which nobody claims before finalizing them
	steps      int // of each
	out        io.Writer
}

const (
	// claimP95Max is what 95 of 100 claims must be below.
	claimP95Max = 100 * time.Millisecond
	// firstShareMin is the share of parents of which the first claim must succeed.
	firstShareMin = 0.95
)

// finalizersResult is what a run of finalizers found.
type finalizersResult struct {
	Parents        int     `json:"parents"`
	Finalizers     int     `json:"finalizers"`
	Claims         int     `json:"claims"`
	ClaimP50MS     float64 `json:"claim_p50_ms"`
	ClaimP95MS     float64 `json:"claim_p95_ms"`
	ClaimMaxMS     float64 `json:"claim_max_ms"`
	FirstSucceeded int     `json:"first_attempts_succeeded"` // parents whose first claim was granted
	Contended      int     `json:"contended"`
	Finalizes      int     `json:"finalizes"`
	FinalizeP95MS  float64 `json:"finalize_p95_ms"`
	Finalized      int     `json:"finalized"` // answers that say: this call did it
	ToldSo         int     `json:"told_what_was_done"`
	Direct         int     `json:"parents_without_claims"`
	OneCompleted   int     `json:"parents_with_one_completed_event"`
	Errors         int     `json:"errors"`
	Seconds        float64 `json:"seconds"`

	Violations []string `json:"violations"`
}

// OK reports whether all was reached that must be.
func (r *finalizersResult) OK() bool { return len(r.Violations) == 0 }

// runFinalizers lets finalizers contend for parents, all for one at a time, and
// says how each was ended and how long that took.
func runFinalizers(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("finalizers", flag.ContinueOnError)
	cfg := finalizersConfig{out: out}
	flags.StringVar(&cfg.binary, "binary", "", "the claimq binary; built if not given")
	flags.IntVar(&cfg.parents, "parents", 1000, "parents that are claimed and finalized")
	flags.IntVar(&cfg.finalizers, "finalizers", 20, "finalizers of each parent, all at once")
	flags.IntVar(&cfg.direct, "direct", 100, "further parents that all finalize at once without a claim")
	flags.IntVar(&cfg.steps, "steps", 3, "steps of each parent")
	output := flags.String("output", "table", "table or json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if cfg.parents < 1 || cfg.finalizers < 1 || cfg.steps < 1 || *output != "table" && *output != "json" {
		return fmt.Errorf("at least one of each, and --output table or json\n%s", usage)
	}
	var result *finalizersResult
	err := withNodes(ctx, "finalizers", cfg.binary, []string{"--log-level", "warn"}, func(cluster *procs.Cluster, _ string) error {
		var err error
		result, err = contend(ctx, cluster, cfg)
		return err
	})
	if err != nil {
		return err
	}
	if *output == "json" {
		b, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintln(out, string(b))
	} else {
		fmt.Fprint(out, result)
	}
	if !result.OK() {
		return errFails
	}
	return nil
}

// contend makes the run.
func contend(ctx context.Context, cluster *procs.Cluster, cfg finalizersConfig) (*finalizersResult, error) {
	rec := recorder.New(1)
	defer rec.Close()
	f := &finalizing{
		cfg: cfg, cluster: cluster,
		result: &finalizersResult{Parents: cfg.parents, Finalizers: cfg.finalizers, Direct: cfg.direct, Violations: []string{}},
	}
	for i := range cfg.finalizers {
		f.callers = append(f.callers, rec.Caller(cluster.URLs(), i))
	}
	ids, err := f.prepare(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for n, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f.race(ctx, id, n < cfg.parents)
	}
	f.result.Seconds = time.Since(began).Seconds()
	for n, id := range ids {
		if err := f.look(ctx, id, n < cfg.parents); err != nil {
			return nil, err
		}
	}
	f.judge(rec.History())
	return f.result, nil
}

// finalizing is a run under way.
type finalizing struct {
	cfg     finalizersConfig
	cluster *procs.Cluster
	callers []*recorder.Caller // one each
	result  *finalizersResult
}

func (f *finalizing) violate(format string, args ...any) {
	f.result.Violations = append(f.result.Violations, fmt.Sprintf(format, args...))
}

// prepareMax is how many parents are prepared in one request.
const prepareMax = 100

// prepare submits the parents and completes their steps, so that all of them wait
// for who ends them.
func (f *finalizing) prepare(ctx context.Context) ([]uint64, error) {
	leader, err := f.cluster.WaitLeader(ctx)
	if err != nil {
		return nil, err
	}
	var ids []uint64
	for total := f.cfg.parents + f.cfg.direct; len(ids) < total; {
		var req wire.SubmitMany
		for range min(prepareMax, total-len(ids)) {
			t := wire.NewTask{TaskType: "parent", Finalize: "claim"}
			for place := range f.cfg.steps {
				t.Steps = append(t.Steps, wire.NewStep{Step: fmt.Sprintf("s%d", place+1), NewTask: wire.NewTask{TaskType: "step", Params: json.RawMessage("{}")}})
			}
			req.Tasks = append(req.Tasks, t)
		}
		var submitted wire.Answer
		if err := ask(ctx, leader, http.MethodPost, "/api/tasks", req, &submitted); err != nil {
			return nil, err
		}
		for i := range submitted.Results {
			ids = append(ids, submitted.Results[i].ID)
		}
	}
	for left := len(ids) * f.cfg.steps; left > 0; {
		var claimed wire.Answer
		if err := ask(ctx, leader, http.MethodPost, "/api/tasks/claim", wire.Claim{WorkerID: "w", Limit: 500}, &claimed); err != nil {
			return nil, err
		}
		if len(claimed.Tasks) == 0 {
			return nil, fmt.Errorf("%d steps are left, and none can be claimed", left)
		}
		var batch wire.Batch
		for i := range claimed.Tasks {
			t := &claimed.Tasks[i]
			batch.Ops = append(batch.Ops, wire.Op{Op: "complete", ID: t.ID, Fields: wire.Settle{WorkerID: "w", ClaimToken: *t.ClaimToken}})
		}
		var done wire.BatchAnswer
		if err := ask(ctx, leader, http.MethodPost, "/api/batch", batch, &done); err != nil {
			return nil, err
		}
		left -= len(done.Results) - done.Failed
	}
	return ids, nil
}

// race lets all finalizers at one parent. With claims, all ask for it at once, who
// gets it ends it, and then the others try to end it, all at once.
func (f *finalizing) race(ctx context.Context, id uint64, claims bool) {
	losers := make([]bool, len(f.callers))
	together(f.callers, func(i int, c *recorder.Caller) {
		name := fmt.Sprintf("p%d", i+1)
		if !claims {
			losers[i] = true
			return
		}
		claim := c.ClaimFinalization(ctx, id, wire.FinalizationClaim{ProcessorID: name, TimeoutSeconds: 30})
		if losers[i] = !claim.Done; claim.Done {
			c.Finalize(ctx, id, finalizeAs(name, claim.Token))
		}
	})
	together(f.callers, func(i int, c *recorder.Caller) {
		if losers[i] {
			c.Finalize(ctx, id, finalizeAs(fmt.Sprintf("p%d", i+1), 0))
		}
	})
}

// together lets all do something at once, and waits for them.
func together(callers []*recorder.Caller, do func(i int, c *recorder.Caller)) {
	start := make(chan struct{})
	var doing sync.WaitGroup
	for i, c := range callers {
		doing.Go(func() {
			<-start
			do(i, c)
		})
	}
	close(start)
	doing.Wait()
}

func finalizeAs(name string, token uint64) wire.Finalize {
	return wire.Finalize{ProcessorID: name, ClaimToken: token, Outcome: "completed", Result: json.RawMessage(fmt.Sprintf(`{"by":%q}`, name))}
}

// look looks at a parent afterwards: what it became, its events, and who tried.
func (f *finalizing) look(ctx context.Context, id uint64, claims bool) error {
	leader, err := f.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	var events wire.Events
	if err := ask(ctx, leader, http.MethodGet, fmt.Sprintf("/api/tasks/%d/events", id), nil, &events); err != nil {
		return err
	}
	kinds := map[string]int{}
	for i := range events.Events {
		kinds[events.Events[i].Event]++
	}
	if kinds["completed"] == 1 {
		f.result.OneCompleted++
	}
	want := 0
	if claims {
		want = 1
	}
	if kinds["completed"] != 1 || kinds["finalized"] != 1 || kinds["finalization_claimed"] != want {
		f.violate("parent %d has the events %v", id, kinds)
	}
	var tried wire.Finalization
	if err := ask(ctx, leader, http.MethodGet, fmt.Sprintf("/api/tasks/%d/finalization", id), nil, &tried); err != nil {
		return err
	}
	if claims && len(tried.Attempts) > 0 && tried.Attempts[0].Claimed {
		f.result.FirstSucceeded++
	}
	if claims && len(tried.Attempts) != min(f.cfg.finalizers, 100) {
		f.violate("parent %d: %d attempts are recorded, %d finalizers tried", id, len(tried.Attempts), f.cfg.finalizers)
	}
	return nil
}

// judge looks at what the finalizers were answered.
func (f *finalizing) judge(h *history.History) {
	r := f.result
	var claims, finalizes []time.Duration
	for i := range h.Ops {
		op := &h.Ops[i]
		took := time.Duration(op.Return - op.Call)
		if op.Outcome != history.OK {
			r.Errors++
			f.violate("an error: %s", check.Describe(op))
			continue
		}
		if op.Kind == history.ClaimFinalization {
			claims = append(claims, took)
		} else {
			finalizes = append(finalizes, took)
		}
	}
	found := check.Finalizers(h)
	for _, v := range found.Violations {
		f.violate("[%s] %s", v.Rule, v.Text)
	}
	r.Claims, r.Contended, r.Finalizes, r.Finalized, r.ToldSo = found.Claims, found.Contended, found.Finalizes, found.Done, found.Already
	r.ClaimP50MS, r.ClaimP95MS, r.ClaimMaxMS = millis(claims, 0.5), millis(claims, 0.95), millis(claims, 1)
	r.FinalizeP95MS = millis(finalizes, 0.95)
	if r.Finalized != r.Parents+r.Direct {
		f.violate("%d parents, %d answers say that they ended one", r.Parents+r.Direct, r.Finalized)
	}
	if float64(r.FirstSucceeded) <= firstShareMin*float64(r.Parents) {
		f.violate("of %d of %d parents the first attempt succeeded, more than %.0f %% must", r.FirstSucceeded, r.Parents, 100*firstShareMin)
	}
	if r.ClaimP95MS >= float64(claimP95Max)/float64(time.Millisecond) {
		f.violate("claims take %.1f ms (p95), they must stay below %v", r.ClaimP95MS, claimP95Max)
	}
}

// millis returns the share-th of the durations in milliseconds, 0 of none.
func millis(all []time.Duration, share float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	at := min(int(share*float64(len(all))), len(all)-1)
	return float64(all[at].Microseconds()) / 1000
}

// String is the table, and below it what was found.
func (r *finalizersResult) String() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("parents", "%d, each with %d finalizers that claim it; %d more that all finalize at once", r.Parents, r.Finalizers, r.Direct)
	row("claims", "%d, %d contended; p50 %.1f ms, p95 %.1f ms, max %.1f ms", r.Claims, r.Contended, r.ClaimP50MS, r.ClaimP95MS, r.ClaimMaxMS)
	row("first attempts that succeeded", "%d of %d parents", r.FirstSucceeded, r.Parents)
	row("finalizations", "%d asked for: %d did it, %d were told what was done; p95 %.1f ms", r.Finalizes, r.Finalized, r.ToldSo, r.FinalizeP95MS)
	row("one completed event", "%d of %d parents", r.OneCompleted, r.Parents+r.Direct)
	row("errors", "%d", r.Errors)
	row("time", "%.1f s", r.Seconds)
	row("violations", "%d", len(r.Violations))
	_ = table.Flush() // into memory
	for _, v := range r.Violations[:min(len(r.Violations), violationsShown)] {
		fmt.Fprintf(&b, "\n%s\n", v)
	}
	return b.String()
}

// violationsShown bounds the violations that are printed.
const violationsShown = 50

// errAsked is returned when a request was not answered with a success.
var errAsked = errors.New("not done")

// ask makes one request of the node, whose answer must be a success.
func ask(ctx context.Context, n *procs.Node, method, path string, body, answer any) error {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = strings.NewReader(string(b))
	}
	req, err := http.NewRequestWithContext(ctx, method, n.URL()+path, reader)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%w: %s %s: status %d: %s", errAsked, method, path, resp.StatusCode, raw)
	}
	return json.Unmarshal(raw, answer)
}
