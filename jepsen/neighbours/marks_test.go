package neighbours

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

// said is a round trip that is always answered the same.
type said struct {
	status       int
	header, body string
}

func (s said) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{"X-Said": {s.header}}, Body: io.NopCloser(strings.NewReader(s.body))}, nil
}

// Every place in which an answer may show a mark of another is looked at, and an answer of the
// tenant's own passes.
func TestEyes(t *testing.T) {
	t.Parallel()
	coded := func(before string) string {
		return base64.StdEncoding.EncodeToString([]byte(before + "z3right-params"))
	}
	sealed := base64.RawURLEncoding.EncodeToString([]byte("sealed-cursor-of-a-page"))
	for _, c := range []struct {
		name         string
		header, body string
		leaks        bool
	}{
		{"its own", "z3left", `{"params":"z3left-params","next_cursor":"` + sealed + `"}`, false},
		{"no cursor", "", `{"next_cursor":null}`, false},
		{"another tenant", "", `{"error":"step one failed: z3right-error"}`, true},
		{"the run's own callers", "", `{"idempotency_key":"s7-k12"}`, true},
		{"a header", "z3right-step", `{}`, true},
		{"base64", "", coded(""), true},
		{"base64, a byte on", "", coded("-"), true},
		{"base64, two bytes on", "", coded("--"), true},
		{"a cursor that can be read", "", `{"next_cursor":"a1f"}`, true},
		{"a cursor of ends that can be read", "", `{"next_cursor":"ekx1.1f"}`, true},
		{"a cursor with a mark in it", "", `{"next_cursor":"` + base64.RawURLEncoding.EncodeToString([]byte("z3right")) + `"}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rec := recorder.New(7)
			n := &Neighbours{rec: rec, notes: map[history.EventKind]int{}}
			e := &eyes{Neighbours: n, by: said{200, c.header, c.body}, tenant: "z3left", marks: newMarks(others("z3left", 7))}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://n1/api/tasks", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := e.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if raw, err := io.ReadAll(resp.Body); err != nil || string(raw) != c.body {
				t.Errorf("the answer is passed on as %q, %v", raw, err)
			}
			if events := rec.History().Events; (len(events) == 1 && events[0].Kind == history.Leaked) != c.leaks {
				t.Errorf("noted: %v, want a leak: %v", events, c.leaks)
			}
		})
	}
}

// A reader takes what it asked for and refusals that say to ask later, and nothing else.
func TestReader_ask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		kind   history.EventKind // "" = good
	}{
		{200, `{"success":true,"tasks":[]}`, ""},
		{503, `{"success":false,"error":"e","code":"overloaded"}`, ""},
		{503, `{"success":false,"error":"e","code":"no_leader"}`, ""},
		{200, ``, history.Garbled},
		{200, `{"success":true,"tasks":[`, history.Garbled},
		{200, `{"success":true}`, history.Garbled},
		{200, `{"success":true,"tasks":[{"id":1}]}`, history.Garbled},
		{503, ``, history.Garbled},
		{500, `{"success":false,"error":"e","code":"internal"}`, history.Garbled},
		{502, `{"success":false,"error":"e","code":"overloaded"}`, history.Garbled},
	} {
		t.Run(fmt.Sprint(c.status, c.body), func(t *testing.T) {
			t.Parallel()
			rec := recorder.New(7)
			n := &Neighbours{rec: rec, notes: map[history.EventKind]int{}, readers: said{c.status, "", c.body}}
			r := &reader{Neighbours: n}
			r.ask(t.Context(), "http://n1", heavies[0], len(c.body)%2 == 0)
			if events := rec.History().Events; len(events) != min(len(c.kind), 1) || len(events) == 1 && events[0].Kind != c.kind {
				t.Errorf("noted: %v, want %q", events, c.kind)
			}
		})
	}
}
