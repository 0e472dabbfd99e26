package fsm

import (
	"fmt"
	"strings"

	"github.com/claimq/claimq/fsm/record"
)

// why shows why the task is not running.
func (s *script) why(id uint64) {
	w, ok := s.m.Why(id, s.stamp)
	if !ok {
		s.printf("nothing")
		return
	}
	line := fmt.Sprintf("%d is %v", id, w.Status)
	if w.Ahead >= 0 {
		line += fmt.Sprintf(", %d ahead", w.Ahead)
	}
	for _, r := range w.Reasons {
		line += ", " + describeReason(r)
	}
	s.printf("%s", line)
}

func describeReason(r WhyReason) string {
	var b strings.Builder
	b.WriteString(string(r.Code))
	if r.At != 0 {
		fmt.Fprintf(&b, " until %d", r.At-scriptEpoch)
	}
	if r.TaskID != 0 {
		fmt.Fprintf(&b, " %d", r.TaskID)
	}
	for _, name := range r.Steps {
		fmt.Fprintf(&b, " %s", name)
	}
	for _, h := range r.Holders {
		fmt.Fprintf(&b, " %d/%s", h.TaskID, h.WorkerID)
	}
	return b.String()
}

// workers shows who holds claims.
func (s *script) workers(a *args) {
	views := s.m.Workers(a.text("after", ""), int(a.option("limit", 100)))
	for _, v := range views {
		s.printf("%s holds %d: %v, seen at %d", v.WorkerID, v.Claimed, v.TaskIDs, v.SeenT-scriptEpoch)
	}
	if len(views) == 0 {
		s.printf("nobody")
	}
}

// rates shows the rates of the type.
func (s *script) rates(name string) {
	v, _ := s.m.Type(name, s.stamp)
	perS := func(n int64) string { return fmt.Sprintf("%d.%06d", n/record.Million, n%record.Million) }
	s.printf("submitted %s, completed %s, failed %s a second", perS(v.SubmittedPerS), perS(v.CompletedPerS), perS(v.FailedPerS))
}
