package kind_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/client/kind"
)

// Region is embedded in other params.
type Region struct {
	Land string `json:"land" claimq:"unique"`
}

type order struct {
	Region
	ID   int       `claimq:"unique"`
	At   time.Time `json:"at,omitzero" claimq:"unique"`
	Note string    `json:"note"`
}

type farOrder struct {
	*Region
	ID []string `json:"id" claimq:"unique"`
}

func TestKind_keys(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	long := strings.Repeat("x", 300)
	orders := kind.New[order, kind.None]("order")
	far := kind.New[*farOrder, kind.None]("far")
	tests := map[string]struct {
		task func() (client.Task, error)
		want string
	}{
		"embedded, without a name, in the fields' order": {
			func() (client.Task, error) { return orders.Task(order{Region{"at"}, 7, at, "hi"}) },
			`order{"land":"at","ID":7,"at":"2026-01-02T03:04:05Z"}`,
		},
		"what is not tagged does not count": {
			func() (client.Task, error) { return orders.Task(order{Region{"at"}, 7, at, "ho"}) },
			`order{"land":"at","ID":7,"at":"2026-01-02T03:04:05Z"}`,
		},
		"a pointer, and one that is not there": {
			func() (client.Task, error) { return far.Task(&farOrder{nil, []string{`a","b`}}) },
			`far{"land":null,"id":["a\",\"b"]}`,
		},
		"too long": {
			func() (client.Task, error) { return far.Task(&farOrder{nil, []string{long}}) },
			fmt.Sprintf("far#%x", sha256.Sum256([]byte(`far{"land":null,"id":["`+long+`"]}`))),
		},
		"an option's": {
			func() (client.Task, error) {
				return orders.Task(order{}, func(t *client.Task) { t.IdempotencyKey = "mine" })
			},
			"mine",
		},
		"no tags": {
			func() (client.Task, error) { return kind.New[map[string]int, kind.None]("m").Task(nil) }, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.task()
			if err != nil || got.IdempotencyKey != test.want {
				t.Errorf("%q, %v, want %q", got.IdempotencyKey, err, test.want)
			}
		})
	}
	if _, err := far.Task(nil); err == nil || err.Error() != "task of kind far: make its key: the params are nil" {
		t.Errorf("nil params: %v", err)
	}
}

func TestKind_options(t *testing.T) {
	t.Parallel()
	k := kind.New[string, kind.None]("", func(t *client.Task) { t.Priority, t.MaxAttempts = 1, 2 })
	got, err := k.Task("x", func(t *client.Task) { t.Priority, t.TaskType, t.Payload = 3, "other", nil })
	if err != nil || got.Priority != 3 || got.MaxAttempts != 2 || got.TaskType != "default" || k.Type() != "default" || string(got.Payload) != `"x"` {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := kind.New[func(), kind.None]("f").Task(nil); err == nil || !strings.HasPrefix(err.Error(), "task of kind f: encode params: ") {
		t.Errorf("what JSON cannot hold: %v", err)
	}
}

func TestNew_panics(t *testing.T) {
	t.Parallel()
	tests := map[string]func(){
		`claimq: kind "k": field A has the tag claimq:"uniqe", it must be claimq:"unique"`: func() {
			kind.New[struct {
				A int `claimq:"uniqe"`
			}, kind.None]("k")
		},
		`claimq: kind "k": field A is unique, but not in the JSON of the parameters`: func() {
			kind.New[struct {
				A int `json:"-" claimq:"unique"`
			}, kind.None]("k")
		},
		`claimq: kind "k": field a is unique, but not in the JSON of the parameters`: func() {
			kind.New[struct {
				a int `claimq:"unique"`
			}, kind.None]("k")
		},
	}
	for want, new := range tests {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got := recover(); got != want {
					t.Errorf("it panics with %v", got)
				}
			}()
			new()
		})
	}
}

// Parameters and results of every encoding survive the round trip through a worker.
func TestKind_roundTrip(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	w, err := client.NewWorker(s.Client(), client.WorkerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	double := kind.New[int, int]("double")
	double.Handle(w, func(_ context.Context, job *client.Job[int]) (int, error) { return 2 * job.Params, nil })
	bytes := kind.New[[]byte, []byte]("bytes")
	bytes.Handle(w, func(_ context.Context, job *client.Job[[]byte]) ([]byte, error) { return append(job.Params, 0xff), nil })
	raw := kind.New[json.RawMessage, json.RawMessage]("raw")
	raw.Handle(w, func(_ context.Context, job *client.Job[json.RawMessage]) (json.RawMessage, error) {
		return job.Params, nil
	})
	none := kind.New[string, kind.None]("none")
	none.Handle(w, func(_ context.Context, job *client.Job[string]) (kind.None, error) { return kind.None{}, nil })
	broken := kind.New[int, *int]("broken")
	broken.Handle(w, func(context.Context, *client.Job[int]) (*int, error) {
		return new(7), client.Permanent(errors.New("no"))
	})
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()
	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()

	c := s.Client()
	if got, err := result(t, c, double, 21); got != 42 || err != nil {
		t.Errorf("an int: %v, %v", got, err)
	}
	if got, err := result(t, c, bytes, []byte{0xfe}); string(got) != "\xfe\xff" || err != nil {
		t.Errorf("bytes: %q, %v", got, err)
	}
	if got, err := result(t, c, raw, json.RawMessage(`{"a":1}`)); string(got) != `{"a":1}` || err != nil {
		t.Errorf("JSON as it is: %s, %v", got, err)
	}
	if _, err := result(t, c, none, "x"); err != nil {
		t.Errorf("none: %v", err)
	}
	if task := s.Await("4", client.StatusCompleted); task.Result != nil {
		t.Errorf("a kind without a result has %s", task.Result)
	}
	_, err = result(t, c, broken, 1)
	if !errors.Is(err, client.ErrTaskFailed) || err.Error() != "result of task 5 (broken, attempt 1): task has failed: no" {
		t.Errorf("one that failed: %v", err)
	}

	// Parameters from another program.
	id, err := c.Submit(ctx, client.Task{TaskType: "double", Payload: []byte(`"two"`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := double.Result(ctx, c, id); !errors.Is(err, client.ErrTaskFailed) || !strings.Contains(err.Error(), "attempt 1") || !strings.Contains(err.Error(), "do not decode into int") {
		t.Errorf("params that do not decode: %v", err)
	}
}

func result[P, R any](t *testing.T, c *client.Client, k *kind.Kind[P, R], params P) (R, error) {
	t.Helper()
	s, err := k.Submit(t.Context(), c, params)
	if err != nil {
		t.Fatal(err)
	}
	return k.Result(t.Context(), c, s.ID)
}

func TestKind_readTask(t *testing.T) {
	t.Parallel()
	k := kind.New[int, int]("double")
	task := client.Task{ID: "7", TaskType: "double", Attempts: 2, Payload: []byte("3"), Result: []byte("6"), Status: client.StatusCompleted}
	if got, err := k.ResultOf(&task); got != 6 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := k.ParamsOf(&task); got != 3 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for want, change := range map[string]func(*client.Task){
		"task 7 (other, attempt 2): it is not of the kind double": func(t *client.Task) { t.TaskType = "other" },
		"it has not ended yet: it is running":                     func(t *client.Task) { t.Status = client.StatusRunning },
		"task is cancelled":                                       func(t *client.Task) { t.Status = client.StatusCancelled },
		"cannot unmarshal string":                                 func(t *client.Task) { t.Result = []byte(`"six"`) },
	} {
		task := task
		change(&task)
		if _, err := k.ResultOf(&task); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	task.Payload = []byte("{}")
	if _, err := k.ParamsOf(&task); err == nil || !strings.HasPrefix(err.Error(), "params of task 7 (double): ") {
		t.Errorf("%v", err)
	}
	task.TaskType = "other"
	if _, err := k.ParamsOf(&task); err == nil {
		t.Error("params of another kind")
	}
}
