package jsonout

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzString compares the escaping with encoding/json: both must mean the same string.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "é😀\u2028", "\xff", "a\xc3", "\xed\xa0\x80", "\ufffd", "a\xe2\x82"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ours := String(nil, s)
		theirs, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		if err := json.Unmarshal(ours, &got); err != nil {
			t.Fatalf("%q became %s: %v", s, ours, err)
		}
		if err := json.Unmarshal(theirs, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%q means %q, want %q", s, got, want)
		}
		if !reflect.DeepEqual(ours, String(nil, []byte(s))) {
			t.Errorf("%q: bytes and string differ", s)
		}
	})
}
