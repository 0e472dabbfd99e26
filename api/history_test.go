package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

func TestServer_History(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	wants := func(when, query, want string) {
		t.Helper()
		if got := s.call(t, "GET /api/history"+query, "").body; !strings.Contains(got, want) {
			t.Errorf("%s: got %s\nwant %s", when, got, want)
		}
	}
	const none = `"submitted":[],"completed":[],"failed":[],"pending":[],"claimed":[],"oldest_pending_age_ms":[],"waited_p50_ms":[],"waited_p99_ms":[],"ran_p50_ms":[],"ran_p99_ms":[]}`
	wants("not begun", "", `"task_type":null,"interval_ms":60000,"since":null,"from":null,"to":null,"kept":true,`+none)
	wants("a type without tasks", "?task_type=mail", `"task_type":"mail","interval_ms":60000,"since":null,"from":null,"to":null,"kept":false,`+none)
	apply := func(c command.Command) {
		t.Helper()
		if p, err := node.Apply(c); err != nil || p.Result.Code != "" {
			t.Fatalf("%+v: %+v, %v", c, p.Result, err)
		}
	}
	at := func(ms int64) string { // the clock starts with a minute
		return time.UnixMilli(nodetest.Start + ms).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	apply(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("1")}, {Type: "mail", Params: []byte("2")}}})
	node.Advance(1500)
	apply(command.ClaimNext{WorkerID: "w", Limit: 1, LeaseMS: 600_000})
	node.Advance(118_500)
	for _, query := range []string{"?minutes=3", "?task_type=mail", "?consistency=stale"} {
		wants("in the third minute", query, fmt.Sprintf(`"since":"%s","from":"%[1]s","to":"%s","kept":true,"submitted":[2,0,0],"completed":[0,0,0],"failed":[0,0,0],"pending":[1,1,1],"claimed":[1,1,1],`+
			`"oldest_pending_age_ms":[60000,120000,120000],"waited_p50_ms":[1407,null,null],"waited_p99_ms":[1407,null,null],"ran_p50_ms":[null,null,null],"ran_p99_ms":[null,null,null]}`, at(0), at(120_000)))
	}
	wants("the last two minutes", "?minutes=2", fmt.Sprintf(`"since":"%s","from":"%s","to":"%s","kept":true,"submitted":[0,0],`, at(0), at(60_000), at(120_000)))
}
