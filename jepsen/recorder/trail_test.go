package recorder

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/history"
)

// toldPages answers GET /api/events?after=, by after.
type toldPages map[string]string

func (p toldPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, known := p[r.FormValue("after")]
	if !known || r.URL.Path != "/api/events" || r.FormValue("limit") != pageLimit || r.FormValue("consistency") != "stale" {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(page))
}

func event(place string) string {
	index, sub, _ := strings.Cut(place, ".")
	return `{"index":` + index + `,"sub":` + sub + `,"time":"2026-01-02T03:04:05.006Z","task_id":3,"event":"claimed","worker_id":"w1","claim_token":5,"attempt":1,"message":"m"}`
}

// A page that ends within an entry, even the newest, or that is empty, is not the last.
func TestReadTrail(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(toldPages{
		"":    `{"events":[` + event("7.0") + `],"next":"7.0"}`,
		"7.0": `{"events":[` + event("7.1") + `],"next":"7.1"}`,
		"7.1": `{"events":[],"next":"8.2"}`,
		"8.2": `{"events":[` + event("9.0") + `,` + event("9.1") + `],"next":"9.1"}`,
		"9.1": `{"events":[` + event("9.2") + `],"next":"9.2"}`,
		"9.2": `{"events":[],"next":"9.2"}`,
	})
	defer server.Close()
	ask := procs.At(server.Listener.Addr().String(), "").Ask
	got, err := ReadTrail(t.Context(), ask, true)
	if want := []string{event("7.0"), event("7.1"), event("9.0"), event("9.1"), event("9.2")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := ReadTrail(t.Context(), ask, false); err == nil {
		t.Error("a page that is refused is no end")
	}
}

// The checkers need indexes of the log, which are lower than places.
func TestInLog(t *testing.T) {
	t.Parallel()
	events := []string{event("7.1"), event("5000000000001.0"), event("5000000000002.3")}
	for place, want := range map[string][]uint64{"5000000000009": {7, 1, 2}, "": {7, 5000000000001, 5000000000002}} {
		got, err := inLog(events, place, 9)
		if err != nil || len(got) != 3 || got[0].Index != want[0] || got[1].Index != want[1] || got[2].Index != want[2] || got[2].Sub != 3 {
			t.Errorf("of a trail at %q: %+v, %v", place, got, err)
		}
	}
}

func TestParseTrail(t *testing.T) {
	t.Parallel()
	got, err := ParseTrail([]string{event("9.1"), `{"index":10,"sub":0,"time":"1970-01-01T00:00:00.001Z","task_id":null,"event":"node_set","worker_id":null,"claim_token":null,"attempt":null,"message":""}`})
	want := []history.Told{
		{Index: 9, Sub: 1, At: 1767323045006, Kind: "claimed", TaskID: 3, Worker: "w1", Token: 5, Message: "m"},
		{Index: 10, At: 1, Kind: "node_set"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := ParseTrail([]string{"{"}); err == nil {
		t.Error("half an event is none")
	}
}
