package hotjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	names := func(n int) string {
		b := []byte("{")
		for i := range n {
			b = fmt.Appendf(b, `"%d":0,`, i)
		}
		return string(b[:len(b)-1]) + "}"
	}
	for s, want := range map[string]bool{
		`{"a":1,"b":[{"a":2},{"a":3}]}`:        true,
		`[]`:                                   true,
		`"é \ud83d\ude00"`:                     true,
		`{"a":{"a":{"a":"a"}},"b":"a"}`:        true,
		`1e400`:                                true,
		`false`:                                true,
		"\"\uFFFD\"":                           true,
		``:                                     false,
		`{`:                                    false,
		`null`:                                 false,
		` {}`:                                  false,
		"{}\n":                                 false,
		"\"\xff\"":                             false,
		`{"a":1,"a":2}`:                        false,
		`[{"b":{"a":1,"c":{},"\u0061":2}}]`:    false,
		`"\ud83d"`:                             false,
		`{"\udE00":1}`:                         false,
		deep(depthMax - 1):                     true,
		deep(depthMax):                         false,
		`{"a":[{"b":1},2],"c":{"a":1},"a":3}`:  false,
		`[{"a":1,"b":2},{"a":"\"a\",\"a\":"}]`: true,
		`{"a":",\"a\":","b":"{"}`:              true,
		`{"a":"{","b":["}"],"c":"],","b":1}`:   false,
		names(namesMax):                        true,
		names(namesMax + 1):                    true,
		strings.Replace(names(namesMax-1), "}", `,"0":1}`, 1): false,
		strings.Replace(names(namesMax+1), "}", `,"0":1}`, 1): false,
	} {
		if got := RoundTrips([]byte(s)); got != want {
			t.Errorf("%.60q: got %v", s, got)
		}
	}
}

// FuzzRoundTrips compares the fast check with encoding/json and the walk token by token.
func FuzzRoundTrips(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":[{"a":2},{"a":3}]}`, `{"a":1,"a":2}`, `[{"b":{"a":1,"c":{},"b":2}}]`, `["a","a"]`, `{"":{"":[]}}`,
		"{ \"a\" : [ 1 , -0.5e3, true ] ,\t\"b\":null}\n", `[01]`, `[1,]`, `{"a"}`, `{"a":}`, `[1 2]`, "\"\x01\"", `"\"`, `tru`, `-`, `{`, `["`, `]`, `{"a":1]`, `[1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !utf8.Valid(b) || !isPlain(b) {
			return
		}
		w := walk{dec: json.NewDecoder(bytes.NewReader(b))}
		w.dec.UseNumber()
		if !json.Valid(b) || !w.ok() {
			t.Errorf("%q is plain, but valid: %v", b, json.Valid(b))
		}
	})
}

func BenchmarkRoundTrips(b *testing.B) {
	payload := []byte(`{"to":"ada@example.org","subject":"Report of the month","template":"monthly","attempt":1,"tags":["a","b"],"at":{"zone":"UTC","hour":7}}`)
	b.ReportAllocs()
	for range b.N {
		RoundTrips(payload)
	}
}
