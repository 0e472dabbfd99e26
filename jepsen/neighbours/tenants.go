package neighbours

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

const (
	// tenantCallers call for a tenant: one works, one reads, one follows a stream.
	tenantCallers = 3
	// tenantPause is between two calls of one of them, familyPause between two families.
	tenantPause, familyPause = 40 * time.Millisecond, 400 * time.Millisecond
	// A tenant reads one stream for streamFor.
	streamFor = 2 * time.Second
	// tenantLeaseMS is the lease of a tenant's claim.
	tenantLeaseMS = 3000
	// idsMax bounds the tasks that are remembered of a kind, the latest ones.
	idsMax = 100
)

// tenant is one who has a key for one type alone.
type tenant struct {
	*Neighbours
	name, key string
	number    int
	made      int    // tasks, for their names; of the one that works
	at        int    // the node that is asked; of the one that looks
	cursor    string // of its last page; of the one that looks

	mu      sync.Mutex // guards what follows
	own     []uint64   // tasks of its type
	steps   []uint64   // of others' parents, for it to claim
	foreign []uint64   // tasks of others
	parents []uint64   // of its type, whose steps are others'
	keys    []string   // of those
}

func newTenant(n *Neighbours, i int) *tenant {
	return &tenant{Neighbours: n, name: names[i], key: n.cfg.Keys.tenants[i], number: i}
}

// let lets the tenants in, once their types are theirs.
func (n *Neighbours) let(ctx context.Context) {
	if n.pauseTenants(ctx, true) != nil {
		return // ctx has ended
	}
	var living sync.WaitGroup
	for i, t := range n.tenants {
		for number, do := range []func(context.Context, *eyes, *rand.Rand){t.work, t.look, t.follow} {
			rng := rand.New(rand.NewSource(n.cfg.Seed*104729 + int64(tenantCallers*i+number)))
			living.Go(func() { do(ctx, t.eyes(), rng) })
		}
	}
	living.Go(func() { n.families(ctx) })
	living.Wait()
}

// eyes returns what makes the tenant's requests and looks at their answers.
func (t *tenant) eyes() *eyes {
	return &eyes{Neighbours: t.Neighbours, by: t.transport(), tenant: t.name, marks: newMarks(others(t.name, t.cfg.Seed))}
}

// remember adds what is to be picked from.
func remember[T any](t *tenant, list *[]T, one T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *list = append(*list, one); len(*list) > idsMax {
		*list = (*list)[1:]
	}
}

// pick returns a random element of the list, the zero value if it is empty.
func pick[T any](t *tenant, list *[]T, rng *rand.Rand) (one T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(*list) > 0 {
		one = (*list)[rng.Intn(len(*list))]
	}
	return one
}

// taken removes the oldest element of the list and returns it, the zero value if the list is empty.
func taken[T any](t *tenant, list *[]T) (one T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(*list) > 0 {
		one, *list = (*list)[0], (*list)[1:]
	}
	return one
}

// say is a text of the tenant's, of a kind: its mark is in it.
func (t *tenant) say(kind string, n any) string { return fmt.Sprintf("%s-%s-%v", t.name, kind, n) }

// said is say as JSON.
func (t *tenant) said(kind string, n any) json.RawMessage {
	return json.RawMessage(fmt.Sprintf("%q", t.say(kind, n)))
}

// newTask is the next task of the tenant.
func (t *tenant) newTask() wire.NewTask {
	t.made++
	once := int32(1)
	return wire.NewTask{
		TaskType: typeOf(t.name), Params: t.said("params", t.made), IdempotencyKey: t.say("key", t.made),
		Labels: wire.Labels{t.say("label", 0): t.say("value", 0)}, Group: t.say("group", t.made), MaxAttempts: &once, Backoff: &wire.Backoff{},
	}
}

// work submits the tenant's tasks, claims them and steps of others' parents, and settles both.
// All of it goes into the history.
func (t *tenant) work(ctx context.Context, e *eyes, rng *rand.Rand) {
	by := t.rec.Caller(t.cfg.Nodes, t.number)
	by.Key = t.key
	by.By(e)
	for pause.For(ctx, time.Duration(rng.ExpFloat64()*float64(2*tenantPause))) {
		id := taken(t, &t.steps)
		if id == 0 {
			task := t.newTask()
			op := until(ctx, func() history.Op { return by.Submit(ctx, task) })
			if id = op.TaskID; id == 0 {
				continue
			}
			remember(t, &t.own, id)
			for _, other := range t.tenants {
				if other != t {
					remember(other, &other.foreign, id)
				}
			}
		}
		t.settle(ctx, by, rng, id)
	}
}

// settle claims the task, and completes or fails it.
func (t *tenant) settle(ctx context.Context, by *recorder.Caller, rng *rand.Rand, id uint64) {
	claim := wire.Claim{WorkerID: t.say("worker", 0), LeaseMS: tenantLeaseMS, ClaimRequestID: t.say("request", id)}
	op := until(ctx, func() history.Op { return by.ClaimTask(ctx, id, claim) })
	if op.Outcome != history.OK {
		return
	}
	kind, s := history.Complete, wire.Settle{WorkerID: claim.WorkerID, ClaimToken: op.Token}
	if rng.Intn(2) == 0 {
		kind, s.Error = history.Fail, t.say("error", id)
	} else {
		s.Result = t.said("result", id)
	}
	for range 1 + rng.Intn(2) { // twice if it was not sure
		until(ctx, func() history.Op { return by.Settle(ctx, kind, id, s)[0] })
	}
}

// families submits parents of each tenant's type with a step of another's, as somebody does whose
// key is for all types. Of these a tenant may see the parent, and nothing of the step.
func (n *Neighbours) families(ctx context.Context) {
	by := n.rec.Caller(n.cfg.Nodes, 0)
	for i := 0; pause.For(ctx, familyPause); i++ {
		of, other := n.tenants[i%len(n.tenants)], n.tenants[(i+1)%len(n.tenants)]
		once := int32(1)
		parent := wire.NewTask{
			TaskType: typeOf(of.name), IdempotencyKey: of.say("family", i),
			Steps: []wire.NewStep{{Step: other.say("step", i), NewTask: wire.NewTask{
				TaskType: typeOf(other.name), Params: other.said("params", "of a step"), MaxAttempts: &once, Backoff: &wire.Backoff{},
			}}},
		}
		op := until(ctx, func() history.Op { return by.Submit(ctx, parent) })
		if op.TaskID == 0 {
			continue
		}
		remember(of, &of.keys, parent.IdempotencyKey)
		remember(of, &of.parents, op.TaskID)
		remember(of, &of.foreign, op.TaskID+1)
		remember(other, &other.steps, op.TaskID+1)
	}
}

// look reads all that the tenant may read, and asks for what it may not. Nothing of it goes into
// the history, as nothing of it changes anything.
func (t *tenant) look(ctx context.Context, e *eyes, rng *rand.Rand) {
	one := "task_type=" + typeOf(t.name)
	for pause.For(ctx, time.Duration(rng.ExpFloat64()*float64(tenantPause))) {
		own, parent, foreign := pick(t, &t.own, rng), pick(t, &t.parents, rng), pick(t, &t.foreign, rng)
		targets := []string{
			"/api/tasks?" + one + "&limit=2&cursor=" + url.QueryEscape(t.cursor),
			"/api/tasks?include=params,result&order=desc&" + one,
			"/api/tasks?status=failed&order=ended&limit=5&" + one,
			"/api/tasks?limit=100",
			"/api/failures?" + one,
			"/api/failures",
			"/api/events?limit=200&after=0&" + one,
			"/api/events?limit=200",
			"/api/types",
			"/api/stats",
			"/api/schedules",
			"/api/history?" + one,
			"/api/workers",
			"/api/tasks/by-key/" + t.say("key", 1),
			"/metrics",
		}
		for _, id := range []uint64{own, own + 1, parent, foreign} { // own + 1 is anybody's
			for _, format := range []string{"/api/tasks/%d", "/api/tasks/%d/why", "/api/tasks/%d/events", "/api/tasks/%d/finalization", "/api/tasks?parent_id=%d&" + one} {
				targets = append(targets, fmt.Sprintf(format, id))
			}
		}
		// Who submits a parent again that somebody else did is shown it.
		if n, key := rng.Intn(len(targets)+3), pick(t, &t.keys, rng); n < len(targets) {
			t.ask(ctx, e, http.MethodGet, strings.TrimSuffix(targets[n], "&cursor="), "")
		} else if key != "" {
			t.ask(ctx, e, http.MethodPost, "/api/tasks", fmt.Sprintf(`{"task_type":%q,"params":1,"idempotency_key":%q}`, typeOf(t.name), key))
		}
	}
}

// ask makes one request and takes the page's cursor, to go on with. Another node is next if this
// one does not answer.
func (t *tenant) ask(ctx context.Context, e *eyes, method, target, body string) {
	asking, cancel := context.WithTimeout(ctx, recorder.DefaultTimeout)
	defer cancel()
	resp, err := t.request(asking, e, method, t.cfg.Nodes[t.at%len(t.cfg.Nodes)]+target, "application/json", body)
	if err != nil {
		t.at++
		pause.For(ctx, retryPause)
		return
	}
	if strings.Contains(target, "limit=2&") {
		var page wire.Answer
		raw, _ := io.ReadAll(resp.Body) // it was read before
		_ = json.Unmarshal(raw, &page)  // a refusal has no cursor
		t.cursor = page.NextCursor
	}
}

// request makes one request, whose answer is looked at.
func (t *tenant) request(ctx context.Context, e *eyes, method, url, accept, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-API-Key", t.key)
	req.Header.Set("Accept", accept)
	return e.RoundTrip(req)
}

// follow reads streams of events, from the trail's beginning, one after the other.
func (t *tenant) follow(ctx context.Context, e *eyes, _ *rand.Rand) {
	for i := t.number; pause.For(ctx, retryPause); i++ {
		following, cancel := context.WithTimeout(ctx, streamFor)
		stream := t.cfg.Nodes[i%len(t.cfg.Nodes)] + "/api/events?after=0&task_type=" + typeOf(t.name)
		_, _ = t.request(following, e, http.MethodGet, stream, "text/event-stream", "") // it ends with following
		cancel()
	}
}
