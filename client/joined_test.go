package client

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// The body of a shared request is its items with commas between them, however it is read, and
// again from the beginning.
func TestJoined(t *testing.T) {
	t.Parallel()
	for _, items := range [][]string{{`{"a":1}`}, {`{"a":1}`, `{}`}, {"x", strings.Repeat("y", 5000), "", "z"}} {
		j := &joined{open: `{"ops":[`}
		for _, item := range items {
			j.rides = append(j.rides, &ride{Item: []byte(item)})
		}
		want := `{"ops":[` + strings.Join(items, ",") + `]}`
		if j.size() != int64(len(want)) {
			t.Errorf("%d items: size %d, want %d", len(items), j.size(), len(want))
		}
		if err := iotest.TestReader(&joinedReader{joined: j}, []byte(want)); err != nil {
			t.Errorf("%d items: %v", len(items), err)
		}
		for range 2 {
			if got, err := io.ReadAll(iotest.OneByteReader(&joinedReader{joined: j})); err != nil || string(got) != want {
				t.Errorf("%d items: %q, %v", len(items), got, err)
			}
		}
	}
}

// A request that calls share says how long it is, and can be sent again by the transport.
func TestJoined_request(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Endpoints: []string{"http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	j := &joined{open: "[", rides: []*ride{{Item: []byte("1")}, {Item: []byte("2")}}}
	req, err := c.newRequest(t.Context(), "http://127.0.0.1:1", Request{Method: http.MethodPost, Path: "/x", joined: j}, false)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		body, err := req.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != "[1,2]}" || req.ContentLength != int64(len(got)) {
			t.Errorf("%q, %v, a length of %d", got, err, req.ContentLength)
		}
	}
	if got := req.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}
