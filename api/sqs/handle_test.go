package sqs

import (
	"testing"

	"github.com/claimq/claimq/fsm/command"
)

func TestHandle(t *testing.T) {
	t.Parallel()
	want := command.Hold{ID: 1 << 52, Token: 7, WorkerID: "sqs-app"}
	handle := handleOf("mail", want)
	if got, ok := readHandle("mail", handle); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, other := range []string{"", "x", handle[:len(handle)-1], handle + "A", "\n" + handle, handle[:10] + "\r\n" + handle[10:], "B" + handle[1:]} {
		if h, ok := readHandle("mail", other); ok {
			t.Errorf("%q is taken for %+v", other, h)
		}
	}
	if _, ok := readHandle("scan", handle); ok {
		t.Error("a handle of one queue is good for another")
	}
}

func FuzzHandle(f *testing.F) {
	f.Add(handleOf("q", command.Hold{ID: 1, Token: 2, WorkerID: "w"}))
	f.Fuzz(func(t *testing.T, handle string) {
		if h, ok := readHandle("q", handle); ok && handleOf("q", h) != handle {
			t.Errorf("%+v has two handles", h)
		}
	})
}

// The stored settings of a queue decode to the same settings.
func TestQueue_String(t *testing.T) {
	t.Parallel()
	q := newQueue("mail", 5)
	q.waitS, q.allow, q.tags = 7, allow{byQueue, "c,d"}, []Pair{{"a b", "c&d="}, {"e", ""}}
	got, ok := readQueue(q.String())
	if !ok || got.String() != q.String() || got.waitS != 7 || got.allow != q.allow || len(got.tags) != 2 || got.tags[0] != q.tags[0] || !got.encrypted {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, s := range []string{"", "1", "1 2 3 4 5 x ", "1 2 3 4 5 6 denyAll a=%zz"} {
		if _, ok := readQueue(s); ok {
			t.Errorf("%q is a queue", s)
		}
	}
}
