package api

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

var update = flag.Bool("update", false, "write the API reference and the types of the Python client")

// readDescription returns openapi.yaml in its order.
func readDescription(t *testing.T) *reference {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal(openAPISource, &document); err != nil {
		t.Fatal(err)
	}
	return &reference{root: document.Content[0], objects: map[string]bool{}, described: map[string]bool{}}
}

// The pages of the reference agree with openapi.yaml, and have all its calls.
func TestReference_document(t *testing.T) {
	t.Parallel()
	r := readDescription(t)
	documents := r.documents()
	for page, want := range documents {
		file := "../docs/" + page
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), want); diff != "" {
			t.Errorf("docs/%s is not what `go test ./api -run Reference_document -update` writes (-is +should be):\n%s", page, diff)
		}
	}
	all := strings.Join(slices.Collect(maps.Values(documents)), "")
	for _, o := range r.operations() {
		if n := strings.Count(all, "\n### "+o.title()+"\n"); n != 1 {
			t.Errorf("%s has %d sections: does a page have its tag %s?", o.title(), n, o.tag())
		}
	}
}

// Parameters and answers of a call are described only once: the page of concepts has no heading of a call, and no
// table of fields or parameters.
func TestReference_alone(t *testing.T) {
	t.Parallel()
	concepts, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	twice := regexp.MustCompile(`(?m)^#+ .*\b(GET|POST|PUT|PATCH|DELETE) /.*$|^\| (field|parameter|setting|event) \|.*$`)
	for _, line := range twice.FindAllString(string(concepts), -1) {
		t.Errorf("docs/protocol.md has %q: say it in openapi.yaml", line)
	}
	if !strings.Contains(string(concepts), "(api.md#") {
		t.Error("docs/protocol.md leads to no call of the reference")
	}
}

// slug returns the anchor of a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// Every link of the reference, and of the guides that link to it, leads to a heading.
func TestReference_links(t *testing.T) {
	t.Parallel()
	anchors := map[string][]string{}
	read := func(page string) string {
		text, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		if anchors[page] == nil {
			for _, h := range headings.FindAllStringSubmatch(string(text), -1) {
				anchors[page] = append(anchors[page], slug(h[1]))
			}
		}
		return string(text)
	}
	links := 0
	for _, page := range []string{"api.md", "api-workers.md", "api-operators.md", "from-redis.md", "from-sqs.md", "from-faktory.md", "from-river.md"} {
		for _, link := range regexp.MustCompile(`\]\(([a-z-]*(?:\.md)?)#([^)]*)\)`).FindAllStringSubmatch(read(page), -1) {
			to := link[1]
			if to == "" {
				to = page
			}
			if read(to); !slices.Contains(anchors[to], link[2]) {
				t.Errorf("docs/%s: %s leads nowhere", page, link[0])
			}
			links++
		}
	}
	if links < 200 {
		t.Errorf("only %d links", links)
	}
}

// methodName matches names that generated clients can use for methods: list_tasks.
var methodName = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)

// Each call documents what to send, the answer, and each field. That the examples fit their schemas is checked where
// the description is read.
func TestReference_complete(t *testing.T) {
	t.Parallel()
	r := readDescription(t)
	for _, o := range r.operations() {
		name := o.method + " " + o.path
		if text(o.get("summary")) == "" || text(o.get("description")) == "" || !methodName.MatchString(text(o.get("operationId"))) {
			t.Errorf("%s needs a summary, a description, and an operationId of a verb and a noun, as %s", name, methodName)
		}
		for status, answer := range r.fields(r.resolve(o.get("responses"))) {
			answer = r.resolve(answer)
			content := r.path(answer, "content", "application/json")
			if status[0] == '2' && content != nil && r.example(content) == nil && text(o.get("operationId")) != "get_openapi" {
				t.Errorf("%s has no example of its answer %s", name, status)
			}
			if text(r.get(answer, "description")) == "" {
				t.Errorf("%s does not say what %s is", name, status)
			}
		}
	}
	codes := r.path(r.root, "components", "schemas", "Code")
	var described []string
	for code, advice := range r.fields(r.get(codes, "x-advice")) {
		described = append(described, code)
		if wire.Code(code).Status() == 0 {
			t.Errorf("the code %s has no status", code)
		}
		if fixed, ok := refuse.Phrases[wire.Code(code)]; ok && text(advice) == "" {
			t.Errorf("the code %s: %s", code, fixed.Advice)
		}
	}
	var all []string
	for _, code := range r.items(r.get(codes, "enum")) {
		all = append(all, text(code))
	}
	if diff := cmp.Diff(all, described); diff != "" {
		t.Errorf("codes and their advice (-codes +advice):\n%s", diff)
	}
}
