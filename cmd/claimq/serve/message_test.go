package serve

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// doneLines are lines of programs, and whether they are read without encoding/json.
var doneLines = map[string]bool{
	`{"kind":"done","id":1,"token":2}`:                                        true,
	`{"kind":"done","id":9007199254740991,"token":9007199254740991}`:          true,
	`{"kind":"done","id":1,"token":2,"result":{"a":[1,"}"]}}`:                 true,
	`{"kind":"done","id":1,"token":2,"result": null }`:                        true,
	`{"kind":"done","id":1,"token":2,"result":"é"}`:                           true,
	`{"kind":"done","id":1,"token":2,"result":1,"submit":[]}`:                 false,
	`{"kind":"done","id":1,"token":2,"result":1,"id":3}`:                      false,
	`{"kind":"done","id":1,"token":2,"result":}`:                              false,
	`{"kind":"done","id":1,"token":2,"result":1}}`:                            false,
	`{"kind":"done","id":1,"token":2,"result":1`:                              false,
	`{"kind":"done","id":1,"token":2,"result_payload":"AA=="}`:                false,
	`{"kind":"done","id":1,"token":2} `:                                       false,
	`{"kind":"done","id":01,"token":2}`:                                       false,
	`{"kind":"done","id":1,"token":0}`:                                        false,
	`{"kind":"done","id":1,"token":-2}`:                                       false,
	`{"kind":"done","id":99999999999999999999,"token":2}`:                     false,
	`{"kind":"done","id":1.5,"token":2}`:                                      false,
	`{"kind":"done","id":1}`:                                                  false,
	`{"kind":"done","token":2,"id":1}`:                                        false,
	`{"kind":"fail","id":1,"token":2}`:                                        false,
	`{"kind":"done","id":1,"token":2,"later":true}`:                           false,
	`{"kind":"done","id":1,"token":2,"result":1,"result_payload":"AA=="}`:     false,
	`{"kind":"done","id":1,"token":2,"result":1,"result":[2],"later":[{}]}`:   false,
	`{"kind":"done","id":1,"token":2,"result":"` + "\t" + `"}`:                false,
	`{"kind":"done","id":1,"token":2,"result":{"a":1},"result":{"a":{"b":2}}`: false,
}

// A done of the form that most have is read as encoding/json reads it.
func TestReadDone(t *testing.T) {
	t.Parallel()
	for line, want := range doneLines {
		got, ok := readDone([]byte(line))
		if ok != want {
			t.Errorf("%s: read %v, want %v", line, ok, want)
		}
		checkDone(t, line, got, ok)
	}
}

func FuzzReadDone(f *testing.F) {
	for line := range doneLines {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := readDone([]byte(line))
		checkDone(t, line, got, ok)
	})
}

func checkDone(t *testing.T, line string, got *programMessage, ok bool) {
	t.Helper()
	if !ok {
		return
	}
	var want programMessage
	if err := json.Unmarshal([]byte(line), &want); err != nil {
		t.Errorf("%s: was read, but by encoding/json %v", line, err)
		return
	}
	if string(want.Result) == "null" { // no result, to the reader of the message
		want.Result = got.Result
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("%s: -want +got\n%s", line, diff)
	}
}

// A task is one line with the same content however it is encoded.
func TestTaskMessage_line(t *testing.T) {
	t.Parallel()
	for _, params := range []string{`{}`, `{ "to": "<ada&é>\u0000" }`, "{\n\"a\":\r1}", `"x"`, `null`, `[1,`, ``} {
		for _, more := range []taskMessage{{}, {Labels: map[string]string{"a": "b"}}, {Attributes: json.RawMessage("{\n\"a\":1}")}, {Signal: json.RawMessage("[\n1]")}} {
			m := taskMessage{
				Kind: kindTask, ID: 1<<64 - 1, Token: 1<<63 - 1, Type: "mail.v1:a-b_c", Attempt: 3, Params: json.RawMessage(params),
				Labels: more.Labels, Attributes: more.Attributes, Signal: more.Signal, TimeoutMS: 60_000,
			}
			want, wantErr := lineOf(m)
			got, err := m.line()
			if (err != nil) != (wantErr != nil) {
				t.Errorf("%q, %+v: %v, want %v", params, more, err, wantErr)
			}
			if err != nil {
				continue
			}
			if bytes.ContainsRune(got, '\r') || bytes.IndexByte(got, '\n') != len(got)-1 {
				t.Errorf("%q is no line", got)
			}
			var a, b any
			if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil {
				t.Errorf("%q or %q is no JSON", want, got)
			}
			if diff := cmp.Diff(a, b); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		}
	}
}
