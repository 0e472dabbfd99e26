package lease

import (
	"testing"

	"github.com/claimq/claimq/fsm"
)

func TestStartU(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		newest uint64
		hints  []Hint
		want   int64 // the state's U is 1000
	}{
		{"no hints", 7, nil, 1000},
		{"of the leader before", 7, []Hint{{7, 1200}}, 1200},
		{"the highest", 7, []Hint{{7, 1200}, {7, 1300}, {7, 1100}}, 1300},
		{"older than the newest entry", 7, []Hint{{7, 900}}, 1000},
		{"of a leader that another one followed", 7, []Hint{{6, 9000}, {7, 1100}}, 1100},
		{"of a leader that wrote nothing", 7, []Hint{{8, 9000}}, 1000},
		{"of the same term", 7, []Hint{{6, 9000}, {9, 1100}}, 1100},
		{"nobody knows who wrote the newest entry", 0, []Hint{{7, 1200}, {0, 1100}}, 1000},
	} {
		if got := StartU(fsm.Stamp{U: 1000}, test.newest, 9, test.hints...); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestHint_Later(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ a, b, want Hint }{
		{Hint{}, Hint{1, 5}, Hint{1, 5}},
		{Hint{2, 5}, Hint{1, 9}, Hint{2, 5}},
		{Hint{2, 5}, Hint{2, 9}, Hint{2, 9}},
	} {
		if got := test.a.Later(test.b); got != test.want {
			t.Errorf("later of %v and %v: %v", test.a, test.b, got)
		}
		if got := test.b.Later(test.a); got != test.want {
			t.Errorf("later of %v and %v: %v", test.b, test.a, got)
		}
	}
}

func TestHintDue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		age    int64
		claims int
		want   bool
	}{{0, 1, false}, {hintAfter - 1, 1, false}, {hintAfter, 1, true}, {10_000, 0, false}} {
		if got := HintDue(fsm.Stamp{U: 500 + test.age}, fsm.Stamp{U: 500}, test.claims); got != test.want {
			t.Errorf("%d claims, the state's U %d ms old: %v", test.claims, test.age, got)
		}
	}
}
