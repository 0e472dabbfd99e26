package hotjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestResults(t *testing.T) {
	t.Parallel()
	const begin = `{"success":true,"results":[`
	for _, c := range []struct {
		body string
		n    int
		ok   bool
	}{
		{begin + `{"id":1},{"a":"]}\"","b":[{}]}],"failed":0}`, 2, true},
		{begin + `{"id":1}]}`, 1, true},
		{begin + `{"a":"\\"}]}`, 1, true},
		{begin + `{"id":1}],"failed":0}`, 2, false},
		{begin + `{"id":1},{"id":2}],"failed":0}`, 1, false},
		{begin + `{"id":1}],"failed":0`, 1, false},
		{begin + `{"id":1}`, 1, false},
		{begin + `{"id":1`, 1, false},
		{begin + `{"id":"1`, 1, false},
		{begin + `1]}`, 1, true}, // found when it is decoded
		{`{"failed":0, "results": [ {"id":1} ], "success": true}`, 1, true},
		{`{"failed":0,"results":[{"id":1}]}`, 1, false},
		{begin + `}]}`, 1, false},
		{begin + `{}]`, 1, false},
		{begin + `{}]}}`, 1, false},
		{begin + `{}],"x":{}`, 1, false},
		{`{"success":false,"results":[{}]}`, 1, false},
		{``, 0, false},
	} {
		results, ok := Results([]byte(c.body), c.n)
		if ok != c.ok {
			t.Errorf("%s, %d: %v", c.body, c.n, ok)
		}
		for _, r := range results {
			if !json.Valid(r) {
				t.Errorf("%s has the result %s", c.body, r)
			}
		}
	}
}

// FuzzResults checks that valid JSON is split as encoding/json does it.
func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"id":1},{"a":"]}\"","b":[{}]}`))
	f.Add([]byte(`{"a":"\\\\\""},["x"],"y"`))
	f.Fuzz(func(t *testing.T, inner []byte) {
		b := append(append([]byte(`{"success":true,"results":[`), inner...), `],"failed":0}`...)
		var want struct {
			Results []json.RawMessage
		}
		valid := json.Unmarshal(b, &want) == nil
		got, ok := Results(b, len(want.Results))
		if !valid || !ok {
			return
		}
		for i := range got {
			if !bytes.Equal(bytes.TrimSpace(got[i]), want.Results[i]) {
				t.Fatalf("%s: result %d is %s, want %s", b, i, got[i], want.Results[i])
			}
		}
	})
}
