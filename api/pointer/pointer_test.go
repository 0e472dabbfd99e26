package pointer_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/pointer"
)

func TestPointer_Find(t *testing.T) {
	t.Parallel()
	const text = ` { "to" : "ada" , "n":[1, {"a":"x"},[ ],-1.5e3 ] ,"o":{"a/b":{"~":true}},"q\"":null,"e":"\u00e4\n","":7,"to":"bob","big":{"a":"}"} }`
	for at, want := range map[string]string{
		"/to": `"ada"`, "/n": `[1, {"a":"x"},[ ],-1.5e3 ]`, "/n/0": "1", "/n/1/a": `"x"`, "/n/2": "[ ]", "/n/3": "-1.5e3", "/n/4": "", "/n/01": "", "/n/-": "", "/n/a": "",
		"/o/a~1b/~0": "true", `/q"`: "null", "/e": `"\u00e4\n"`, "/": "7", "/none": "", "/to/a": "", "/n/0/0": "", "/n/2/0": "", "/big/a": `"}"`, "/o": `{"a/b":{"~":true}}`,
	} {
		p, err := pointer.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.Find([]byte(text))); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
	for _, bad := range []string{"", "to", "a/b", "/~", "/a~2", "/~01~", strings.Repeat("/a", pointer.DepthMax+1)} {
		if p, err := pointer.Parse(bad); err == nil {
			t.Errorf("%q is read as %q", bad, p)
		}
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw, text string
		want      bool
	}{
		{`"ada"`, "ada", true},
		{`"ada"`, `"ada"`, false},
		{`17`, "17", true},
		{`17.0`, "17", false},
		{`true`, "true", true},
		{`null`, "null", true},
		{`"\u00e4"`, "ä", true},
		{`"ä"`, "ä", true},
		{`""`, "", true},
		{``, "", true},
		{`"a\"b"`, `a"b`, true},
		{`{"a":1}`, `{"a":1}`, true},
	} {
		if got := pointer.Equal([]byte(c.raw), c.text); got != c.want {
			t.Errorf("%s and %s: %v, want %v", c.raw, c.text, got, c.want)
		}
	}
}

// A pointer finds the value that a decoder finds.
func FuzzPointer_Find(f *testing.F) {
	f.Add(`{"a":[{"b":"c"},1],"d":"\\\""}`, "/a/0/b")
	f.Add(`[[],{},"",1e5]`, "/3")
	f.Fuzz(func(t *testing.T, text, at string) {
		p, err := pointer.Parse(at)
		if err != nil || !json.Valid([]byte(text)) {
			return
		}
		if _, err := json.Marshal(map[string]string{"": at + text}); err != nil || strings.ToValidUTF8(text+at, "") != text+at {
			return // a decoder changes what is no UTF-8
		}
		value, ok := json.RawMessage(text), true
		for _, name := range p {
			value, ok = childOf(value, name)
		}
		var got, want any
		if found := p.Find([]byte(text)); found != nil {
			if err := json.Unmarshal(found, &got); err != nil {
				t.Fatalf("%s of %s: %q: %v", at, text, found, err)
			}
		} else if ok {
			t.Fatalf("%s of %s: nothing", at, text)
		}
		if ok {
			if err := json.Unmarshal(value, &want); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", at, text, diff)
		}
	})
}

// childOf decodes an object or an array, of which the first of equal names counts.
func childOf(value json.RawMessage, name string) (json.RawMessage, bool) {
	if value == nil {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(string(value)))
	open, err := d.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return nil, false
	}
	for i := 0; d.More(); i++ {
		key := strconv.Itoa(i)
		if open == json.Delim('{') {
			token, _ := d.Token()
			key = token.(string)
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil, false
		}
		if key == name {
			return v, true
		}
	}
	return nil, false
}
