package repeat

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// vectorsFile is read by the tests of the clients in other languages.
const vectorsFile = "../../clients/vectors.json"

var update = flag.Bool("update", false, "write "+vectorsFile)

// vectors are examples of this package's rules. Times are in milliseconds.
type vectors struct {
	About     string           `json:"about"`
	Judge     []judgeVector    `json:"judge"`
	Decides   []decidesVector  `json:"decides"`
	Broken    []brokenVector   `json:"broken"`
	Next      []nextVector     `json:"next"`
	Redirects []redirectVector `json:"redirects"`
	Pause     []pauseVector    `json:"pause"`
	LeaseEnd  []leaseVector    `json:"lease_end"`
	ClaimEnd  []claimVector    `json:"claim_end"`
	PollWait  []pollVector     `json:"poll_wait"`
	Scarce    []scarceVector   `json:"scarce"`
	Safe      []safeVector     `json:"safe"`
}

type judgeVector struct {
	Status  int       `json:"status"`
	Code    wire.Code `json:"code"` // "": not one of claimq's answers
	Verdict string    `json:"verdict"`
}

type decidesVector struct {
	Status  int       `json:"status"`
	Code    wire.Code `json:"code"`
	Decides bool      `json:"decides"`
}

type brokenVector struct {
	Sent    bool   `json:"sent"`
	Verdict string `json:"verdict"`
}

type nextVector struct {
	Name       string `json:"name"`
	Mutation   bool   `json:"mutation"`
	Repeatable bool   `json:"repeatable"`
	Verdict    string `json:"verdict"`
	Action     string `json:"action"`
	Doubted    bool   `json:"doubted"`
}

// redirectVector is one step of a call: a redirect, or that the named node is of no use.
type redirectVector struct {
	Lost   bool   `json:"lost"`
	Action string `json:"action"`
}

type pauseVector struct {
	Tries  int     `json:"tries"`
	Asked  float64 `json:"asked_ms"`
	Random float64 `json:"random"` // 0: the least share, 1: the most, half of the pause
	Pause  float64 `json:"pause_ms"`
}

type leaseVector struct {
	Left float64 `json:"left_ms"`
	End  float64 `json:"end_ms"` // after the request was sent
}

type claimVector struct {
	Name     string  `json:"name"`
	SentAt   float64 `json:"sent_at_ms"` // after the first try
	Left     float64 `json:"left_ms"`
	Asked    float64 `json:"asked_ms"`
	Repeated bool    `json:"repeated"`
	End      float64 `json:"end_ms"` // after the first try
}

type pollVector struct {
	Left  float64 `json:"left_ms"`
	Lease float64 `json:"lease_ms"`
	Wait  float64 `json:"wait_ms"`
}

type scarceVector struct {
	Left   float64 `json:"left_ms"`
	Lease  float64 `json:"lease_ms"`
	Scarce bool    `json:"scarce"`
}

type safeVector struct {
	Op       Op   `json:"op"`
	Marked   bool `json:"marked"`
	Unmarked bool `json:"unmarked"`
	Batch    bool `json:"batch"` // marked, in a batch
}

func verdictName(v Verdict) string {
	return [...]string{Settled: "settled", Redirected: "redirected", Unwritten: "unwritten", Unknown: "unknown"}[v]
}

func actionName(a Action) string {
	return [...]string{Take: "take", Follow: "follow", Wait: "wait", GiveUp: "give_up"}[a]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func makeVectors() vectors {
	v := vectors{About: "Rules of package internal/repeat, written by go test ./internal/repeat -run Vectors -update"}
	for _, c := range judgedRows() {
		v.Judge = append(v.Judge, judgeVector{c.status, c.code, verdictName(c.want)})
		v.Decides = append(v.Decides, decidesVector{c.status, c.code, Decides(c.status, c.code)})
	}
	for _, sent := range []bool{true, false} {
		v.Broken = append(v.Broken, brokenVector{sent, verdictName(Broken(sent))})
	}
	for _, c := range nextedRows() {
		v.Next = append(v.Next, nextVector{c.name, c.call.Mutation, c.call.Repeatable, verdictName(c.v), actionName(c.want), c.doubted})
	}
	var redirected Call
	for _, lost := range []bool{false, false, false, false, true, false, false, false} {
		step := func() Action { return redirected.Next(Redirected) }
		if lost {
			step = redirected.Lost
		}
		v.Redirects = append(v.Redirects, redirectVector{lost, actionName(step())})
	}
	for _, c := range pausedRows() {
		for _, asked := range []time.Duration{0, 3 * time.Second} {
			v.Pause = append(v.Pause, pauseVector{c.tries, ms(asked), 0, ms(c.want + asked)}, pauseVector{c.tries, ms(asked), 1, ms(c.want/2 + asked)})
		}
	}
	start := time.Unix(100, 0)
	for _, left := range []time.Duration{0, 100 * time.Millisecond, 10 * time.Second, 30 * time.Second, time.Hour} {
		v.LeaseEnd = append(v.LeaseEnd, leaseVector{ms(left), ms(LeaseEnd(start, left).Sub(start))})
	}
	for _, c := range endedRows() {
		v.ClaimEnd = append(v.ClaimEnd, claimVector{c.name, 2_000, 10_000, ms(c.asked), c.repeated, ms(c.want)})
	}
	for _, c := range polledRows() {
		v.PollWait = append(v.PollWait, pollVector{ms(c.left), ms(c.lease), ms(c.want)})
		v.Scarce = append(v.Scarce, scarceVector{ms(c.left), ms(c.lease), Scarce(c.left, c.lease)})
	}
	for _, c := range safeRows() {
		v.Safe = append(v.Safe, safeVector{c.op, c.marked, c.unmarked, c.batch})
	}
	return v
}

// The clients in other languages must follow the rules of this package: after a change of a
// rule, the file that this test writes fails their tests until they follow.
func TestVectors(t *testing.T) {
	t.Parallel()
	want, err := json.MarshalIndent(makeVectors(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(vectorsFile, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the rules are: run go test ./internal/repeat -run Vectors -update", vectorsFile)
	}
}
