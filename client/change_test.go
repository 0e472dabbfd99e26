package client

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

// Calls that set a state are repeated when their answer is lost.
func TestClient_changesAreRepeated(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *Client) error{
		`POST /api/tasks/17/cancel {}`: func(ctx context.Context, c *Client) error {
			task, err := c.Cancel(ctx, "17")
			if err == nil && !task.CancelRequested {
				err = errors.New("the answer's task is not returned")
			}
			return err
		},
		`PATCH /api/tasks/17 {"labels":{},"priority":-3,"run_at":null}`: func(ctx context.Context, c *Client) error {
			_, err := c.Patch(ctx, "17", Patch{Priority: new(-3), RunAt: &time.Time{}, Labels: map[string]string{}})
			return err
		},
		`PATCH /api/tasks/17 {"labels":{"a":"b"},"run_at":"2026-01-02T03:04:05.006Z"}`: func(ctx context.Context, c *Client) error {
			_, err := c.Patch(ctx, "17", Patch{RunAt: new(time.Date(2026, 1, 2, 4, 4, 5, 6e6, time.FixedZone("", 3600))), Labels: map[string]string{"a": "b"}})
			return err
		},
		`PATCH /api/tasks/17 {"share_key":"ann"}`: func(ctx context.Context, c *Client) error {
			_, err := c.Patch(ctx, "17", Patch{ShareKey: new("ann")})
			return err
		},
		`PATCH /api/tasks/17 {"share_key":null}`: func(ctx context.Context, c *Client) error {
			_, err := c.Patch(ctx, "17", Patch{ShareKey: new("")})
			return err
		},
		`PATCH /api/types/mail {"paused":true}`: func(ctx context.Context, c *Client) error {
			_, err := c.SetType(ctx, "mail", TypeSettings{Paused: new(true)})
			return err
		},
		`PATCH /api/defaults {"lease_ms":60000}`: func(ctx context.Context, c *Client) error {
			_, err := c.SetDefaults(ctx, TypeSettings{Lease: new(time.Minute)})
			return err
		},
	}
	for want, call := range calls {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			both := `{"success":true,"task":{"id":17,"status":"claimed","cancel_requested":true},"type":{"task_type":"mail"}}`
			s, c := talk(t, breaks, says(200, both))
			if err := call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			got := s.requests()
			if len(got) != 2 {
				t.Fatalf("got %d requests", len(got))
			}
			for _, r := range got {
				if sent := r.method + " " + r.path + " " + r.body; sent != want {
					t.Errorf("sent %s\nwant %s", sent, want)
				}
			}
		})
	}
}

// The refusal of a repeat may be due to a first try that was done.
func TestClient_changesInDoubt(t *testing.T) {
	t.Parallel()
	for _, code := range []wire.Code{wire.CodeTaskAlreadyClaimed, wire.CodeTaskCompleted, wire.CodeTaskNotFound, wire.CodeInvalidRequest} {
		for _, lost := range []bool{true, false} {
			replies := []reply{refuses(code)}
			if lost {
				replies = []reply{breaks, refuses(code)}
			}
			_, c := talk(t, replies...)
			_, err := c.Patch(t.Context(), "17", Patch{Priority: new(1)})
			var refusal *Error
			if got := errors.Is(err, ErrOutcomeUnknown); !errors.As(err, &refusal) || got != (lost && code != wire.CodeInvalidRequest) {
				t.Errorf("%s after a lost answer %v: %v", code, lost, err)
			}
		}
	}
}

func TestClient_changesAreRefused(t *testing.T) {
	t.Parallel()
	s, c := talk(t, refuses(wire.CodeTaskCompleted))
	ctx := t.Context()
	if _, err := c.Cancel(ctx, "17"); !errors.Is(err, ErrTaskCompleted) {
		t.Errorf("cancel: %v", err)
	}
	if _, err := c.Patch(ctx, "17", Patch{}); !errors.Is(err, ErrTaskCompleted) {
		t.Errorf("patch: %v", err)
	}
	n := len(s.requests())
	_, cancelErr := c.Cancel(ctx, "x")
	_, patchErr := c.Patch(ctx, "x", Patch{})
	if !errors.Is(cancelErr, ErrTaskNotFound) || !errors.Is(patchErr, ErrTaskNotFound) {
		t.Errorf("got %v and %v", cancelErr, patchErr)
	}
	for name, p := range map[string]Patch{"priority": {Priority: new(math.MaxInt32 + 1)}, "label": {Labels: map[string]string{"\xff": ""}}, "share key": {ShareKey: new("\xff")}} {
		if _, err := c.Patch(ctx, "17", p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, s := range map[string]TypeSettings{
		"rate": {RateLimit: new(math.NaN())}, "retention": {Retention: new(time.Duration(-3))}, "backoff": {Backoff: &Backoff{Max: time.Second}},
	} {
		if _, err := c.SetType(ctx, "mail", s); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := c.SetDefaults(ctx, s); err == nil {
			t.Errorf("default %s: no error", name)
		}
	}
	if err := c.RetryAdding(ctx, "17", -1); err == nil {
		t.Error("a negative number of attempts was added")
	}
	if len(s.requests()) != n {
		t.Error("something was sent")
	}
}

func TestClient_RetryAdding(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, okAnswer), refuses(wire.CodeKeyTaken))
	if err := c.RetryAdding(t.Context(), "17", 3); err != nil {
		t.Fatal(err)
	}
	if got := s.requests()[0]; got.path != "/api/tasks/17/retry" || got.body != `{"add_attempts":3}` {
		t.Errorf("sent %s %s", got.path, got.body)
	}
	if err := c.Retry(t.Context(), "17"); !errors.Is(err, ErrKeyTaken) {
		t.Errorf("got %v", err)
	}
}

func TestClient_SetType(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settings TypeSettings
		want     string
	}{
		"nothing": {TypeSettings{}, `{}`},
		"all": {
			TypeSettings{new(false), new(5), new(0.1 + 0.2), new(time.Minute), new(UnlimitedAttempts), &Backoff{Initial: time.Second}, new(KeepNone), new(time.Hour), &DeadLetter{"dead", 3}, new(2), new(1.5), new(true)},
			`{"backoff":{"initial_ms":1000},"dead_letter":{"task_type":"dead","max_attempts":3},"delay_ms":3600000,"fair":true,"lease_ms":60000,"max_attempts":0,"max_claimed":5,"max_claimed_per_key":2,"paused":false,"rate_limit":0.3,"rate_limit_per_key":1.5,"retention_ms":0}`,
		},
		"cleared": {
			TypeSettings{nil, new(0), new(0.0), new(time.Duration(0)), new(0), &Backoff{}, new(time.Duration(0)), new(time.Duration(0)), &DeadLetter{}, new(0), new(0.0), new(false)},
			`{"backoff":null,"dead_letter":null,"delay_ms":null,"fair":false,"lease_ms":null,"max_attempts":null,"max_claimed":null,"max_claimed_per_key":null,"rate_limit":null,"rate_limit_per_key":null,"retention_ms":null}`,
		},
	} {
		s, c := talk(t, says(200, `{"success":true,"type":{"task_type":"a/b"}}`))
		got, err := c.SetType(t.Context(), "a/b", test.settings)
		if err != nil || got.Name != "a/b" {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if r := s.requests()[0]; r.path != "/api/types/a%2Fb" || r.body != test.want {
			t.Errorf("%s: sent %s %s\nwant %s", name, r.path, r.body, test.want)
		}
	}
}

func TestClient_Defaults(t *testing.T) {
	t.Parallel()
	s, c := talk(t,
		says(200, `{"success":true,"defaults":{"lease_ms":30000,"max_attempts":3,"backoff":null,"retention_ms":86400000,"failed_retention_ms":1209600000}}`),
		says(200, `{"success":true,"defaults":{"lease_ms":60000,"max_attempts":0,"backoff":{"initial_ms":1000,"max_ms":2000,"factor":2,"jitter":0},"retention_ms":-1,"failed_retention_ms":0}}`),
		refuses(wire.CodeForbidden))
	got, err := c.Defaults(t.Context())
	if diff := cmp.Diff(&ServerDefaults{Lease: 30 * time.Second, MaxAttempts: 3, Retention: 24 * time.Hour, FailedRetention: 14 * 24 * time.Hour}, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	got, err = c.SetDefaults(t.Context(), TypeSettings{MaxAttempts: new(UnlimitedAttempts), Backoff: &Backoff{}, Retention: new(KeepForever)})
	want := &ServerDefaults{Lease: time.Minute, MaxAttempts: UnlimitedAttempts, Backoff: &Backoff{Initial: time.Second, Max: 2 * time.Second, Factor: 2, Jitter: NoJitter}, Retention: KeepForever, FailedRetention: KeepNone}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	sent := s.requests()
	if r := sent[0]; r.method != "GET" || r.path != "/api/defaults" {
		t.Errorf("asked %s %s", r.method, r.path)
	}
	if r, body := sent[1], `{"backoff":null,"max_attempts":0,"retention_ms":-1}`; r.method != "PATCH" || r.path != "/api/defaults" || r.body != body {
		t.Errorf("sent %s %s %s\nwant %s", r.method, r.path, r.body, body)
	}
	if _, err := c.SetDefaults(t.Context(), TypeSettings{Lease: new(time.Minute)}); !errors.Is(err, ErrForbidden) {
		t.Errorf("refused: %v", err)
	}
}

func TestClient_Type(t *testing.T) {
	t.Parallel()
	server, c := talk(t, says(200, `{"success":true,"type":{"task_type":"a:b","counts":{"pending":2},"oldest_pending_age_ms":1500,"paused":true,"max_claimed":3}}`))
	got, err := c.Type(t.Context(), "a:b")
	if err != nil || got.Name != "a:b" || got.Counts[StatusPending] != 2 || got.OldestPendingAge != 1500*time.Millisecond || got.Settings.Paused == nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if got := server.requests()[0].path; got != "/api/types/a:b" {
		t.Errorf("asked for %s", got)
	}
}

func TestClient_Types(t *testing.T) {
	t.Parallel()
	server, c := talk(t, says(200, `{"success":true,"types":[{"task_type":"mail","counts":{"pending":2,"failed":1},"oldest_pending_age_ms":1500,
		"submitted_per_s":1.5,"completed_per_s":2,"failed_per_s":0.5,"paused":true,"max_claimed":3,"max_claimed_per_key":2,"fair":true,"rate_limit":0.5,"lease_ms":1000,"max_attempts":0,
		"backoff":{"initial_ms":1000,"max_ms":2000,"factor":2,"jitter":0},"retention_ms":-1},{"task_type":"sms","counts":{},"paused":false}],
		"total":9,"matched":4,"next":"mail","all":{"counts":{"pending":7},"oldest_pending_age_ms":2500,"submitted_per_s":3,"completed_per_s":4,"failed_per_s":5}}`))
	got, err := c.Types(t.Context(), TypesQuery{Order: "pending", Limit: 2, After: "a", Name: "m", Attention: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := server.requests()[0].path; got != "/api/types?after=a&attention=true&limit=2&name=m&order=pending" {
		t.Errorf("asked for %s", got)
	}
	want := &TaskTypes{Total: 9, Matched: 4, Next: "mail", Types: []TaskType{
		{
			Name: "mail", TypeTallies: TypeTallies{map[TaskStatus]int64{StatusPending: 2, StatusFailed: 1}, 1500 * time.Millisecond, 1.5, 2, 0.5},
			Settings: TypeSettings{
				Paused: new(true), MaxClaimed: new(3), MaxClaimedPerKey: new(2), Fair: new(true), RateLimit: new(0.5), Lease: new(time.Second), MaxAttempts: new(UnlimitedAttempts),
				Backoff: &Backoff{Initial: time.Second, Max: 2 * time.Second, Factor: 2, Jitter: NoJitter}, Retention: new(KeepForever),
			},
		},
		{Name: "sms", TypeTallies: TypeTallies{Counts: map[TaskStatus]int64{}}, Settings: TypeSettings{Paused: new(false), Fair: new(false)}},
	}, All: TypeTallies{map[TaskStatus]int64{StatusPending: 7}, 2500 * time.Millisecond, 3, 4, 5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestSignal(t *testing.T) {
	t.Parallel()
	s, c := talkInMemory(t,
		says(200, `{"success":true,"task":{"id":4,"status":"pending","wait_for_signal_ms":60000,"signalled":true,"signal":{"ok":true}}}`),
		says(200, `{"success":true,"task":{"id":4,"status":"pending","signalled":true,"signal":{"ok":false}},"same_signal":false,"repeated":true}`),
		refuses(wire.CodeTaskFailed),
	)
	defer c.Close()
	for i, want := range []struct {
		signal  string
		differs bool
	}{{`{"ok":true}`, false}, {`{"ok":false}`, true}} {
		got, differs, err := c.Signal(t.Context(), "4", []byte(`{"ok":true}`))
		if err != nil || differs != want.differs || string(got.Signal) != want.signal || !got.Signalled {
			t.Errorf("%d: %+v, differs %v, %v", i, got, differs, err)
		}
	}
	if _, _, err := c.Signal(t.Context(), "4", nil); !errors.Is(err, ErrTaskFailed) {
		t.Errorf("of a failed task: %v", err)
	}
	if got := s.requests(); got[0].path != "/api/tasks/4/signal" || got[0].body != `{"signal":{"ok":true}}` || got[2].body != "{}" {
		t.Errorf("requests %+v", got)
	}
}
