package sqs

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/sqs"
)

// snapshots returns the files of the SDK's own snapshots that end so, by the part of their names before.
func snapshots(t *testing.T, folder, suffix string) map[string][]byte {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2/service/sqs").Output()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), folder, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[strings.TrimSuffix(filepath.Base(path), suffix)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Each request that the Go SDK makes, with everything set, can be read. What it asks for may be refused.
func TestSnapshots_requests(t *testing.T) {
	files := snapshots(t, "request_snapshot", ".request.snap")
	if len(files) != int(sqs.Ops) {
		t.Errorf("%d requests, and %d operations", len(files), sqs.Ops)
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			head, body, _ := strings.Cut(string(file), "\n\n{")
			body = "{" + body
			_, target, _ := strings.Cut(string(file), "X-Amz-Target: ")
			target, _, _ = strings.Cut(target, "\n")
			method, path, _ := strings.Cut(strings.Split(head, "\n")[0], " ")
			h, ok := sqs.HeadOf(method, path, "", target, []byte(body))
			if !ok || h.Bad != nil || h.Query || h.Op.String() != name {
				t.Fatalf("%v, %+v", ok, h)
			}
			if _, bad := sqs.Decode(h, "", []byte(body)); bad != nil && bad.Shape == "SerializationException" {
				t.Errorf("%v\n%s", bad, body)
			}
		})
	}
}

// Every member of the answers is one of the model, and of its type.
func TestSnapshots_answers(t *testing.T) {
	full := sqs.Answer{
		QueueURL: "u", QueueURLs: []string{"u"}, NextToken: "n", Attributes: []sqs.Pair{{Name: "All", Value: "v"}}, Tags: []sqs.Pair{{Name: "key0", Value: "v"}},
		TaskHandle: "h", SourceARN: "a", DestinationARN: "d",
		Done: []sqs.Done{{ID: "i", MessageID: "m", AttributesMD5: "a", SystemMD5: "s", Sequence: "q"}},
	}
	full.Move = newLike(full.Move)
	full.Move.Status, full.Move.Rate = 1, 1 // it runs
	files := snapshots(t, "response_snapshot", ".response.snap")
	if len(files) < 15 {
		t.Fatalf("only %d answers", len(files))
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			h, ok := sqs.HeadOf("POST", "/", "", "AmazonSQS."+name, nil)
			if !ok || h.Bad != nil {
				t.Fatalf("%+v", h)
			}
			var got, want any
			if err := json.Unmarshal(full.Append(nil, &h, nil), &got); err != nil {
				t.Fatal(err)
			}
			_, body, _ := bytes.Cut(file, []byte("\n\n{"))
			if err := json.Unmarshal(append([]byte("{"), body...), &want); err != nil {
				t.Fatal(err)
			}
			within(t, name, got, want)
		})
	}
}

// newLike returns a new value of a type that must not be named here.
func newLike[T any](*T) *T { return new(T) }

// within checks that got has no member that want has not, and none of another type.
func within(t *testing.T, path string, got, want any) {
	t.Helper()
	switch got := got.(type) {
	case map[string]any:
		other, _ := want.(map[string]any)
		for name, v := range got {
			of, ok := other[name]
			if !ok && !strings.HasSuffix(path, "Attributes") {
				t.Errorf("%s.%s is not in the model", path, name)
				continue
			}
			if ok {
				within(t, path+"."+name, v, of)
			}
		}
	case []any:
		other, ok := want.([]any)
		if !ok || len(other) == 0 {
			t.Errorf("%s is a list", path)
			return
		}
		for _, v := range got {
			within(t, path, v, other[0])
		}
	case string:
		if _, ok := want.(string); !ok {
			t.Errorf("%s is a text, not %v", path, want)
		}
	case bool:
		if _, ok := want.(bool); !ok {
			t.Errorf("%s is a boolean, not %v", path, want)
		}
	}
}
