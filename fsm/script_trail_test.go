package fsm

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/claimq/claimq/fsm/event"
)

// events shows a part of the trail: all of a task's if there is an id, else what
// the options select.
func (s *script) events(a *args) {
	if len(a.words) > 0 {
		for _, e := range s.m.TaskEvents(a.id()) {
			s.printf("%s", describeEvent(e))
		}
		return
	}
	var kinds event.Kinds
	if kind, ok := event.ParseKind(a.text("kind", "")); ok {
		kinds = kinds.With(kind)
	}
	page := s.m.Events(event.Query{
		After: a.place("after"), Kinds: kinds, Type: a.text("type", ""), WorkerID: a.text("worker", ""), Limit: int(a.option("limit", 1000)),
	})
	for _, e := range page.Events {
		s.printf("%s", describeEvent(e))
	}
	switch {
	case page.Gone:
		s.printf("gone, the oldest is %d.%d", page.Oldest.Index, page.Oldest.Sub)
	case page.More:
		s.printf("more behind %d.%d", page.Next.Index, page.Next.Sub)
	default:
		s.printf("next %d.%d", page.Next.Index, page.Next.Sub)
	}
}

// place is INDEX.SUB, or INDEX.
func (a *args) place(name string) event.Pos {
	index, sub, _ := strings.Cut(a.text(name, "0.0"), ".")
	return event.Pos{Index: uint64(a.parse(index)), Sub: uint32(a.parse(cmp.Or(sub, "0")))}
}

// describeEvent shows an event in a line.
func describeEvent(e event.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d.%d at %d %v", e.Index, e.Sub, e.T-scriptEpoch, e.Kind)
	if e.TaskID != 0 {
		fmt.Fprintf(&b, " %d", e.TaskID)
	}
	if e.Type != "" {
		fmt.Fprintf(&b, " %s", e.Type)
	}
	if e.Token != 0 {
		fmt.Fprintf(&b, " by %s token %d attempt %d", e.WorkerID, e.Token, e.Attempt)
	}
	if e.Message != "" {
		fmt.Fprintf(&b, " %s", strconv.Quote(e.Message))
	}
	return b.String()
}
