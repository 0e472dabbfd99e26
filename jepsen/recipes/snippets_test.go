package recipes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claimq/claimq/internal/procs"
)

// snippetsDir is the folder, within the module, in which the compiler sees the snippets. It
// does not exist.
const snippetsDir = "docs/snippets"

// The guides' Go code compiles: whole programs alone, anything else with
// testdata/preamble.go, which has what a reader's own program would have.
func TestSnippets(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	preamble, err := os.ReadFile("testdata/preamble.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay := map[string]string{}
	add := func(folder, text string) {
		path := filepath.Join(dir, folder+".go")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, snippetsDir, folder, "snippet.go")] = path
	}
	all, count := string(preamble), 0
	for _, page := range []string{"getting-started", "producers", "workers", "recipes", "troubleshooting"} {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, snippet := range snippets(string(text)) {
			count++
			where := fmt.Sprintf("//line docs/%s.md:%d\n", page, snippet.line)
			switch {
			case strings.HasPrefix(snippet.text, "package "): // a main would be linked, too
				add(fmt.Sprint("program", count), where+strings.Replace(snippet.text, "package main", "package snippet", 1))
			case regexp.MustCompile(`^(//.*\n)*(func|type|var|const) `).MatchString(snippet.text):
				all += where + snippet.text
			default:
				all += fmt.Sprintf("func snippet%d(ctx context.Context, c *client.Client) error {\n", count) + where + snippet.text + "\nreturn nil\n}\n"
			}
		}
	}
	add("all", all)
	if count < 10 {
		t.Fatalf("found only %d snippets", count)
	}
	replaced, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, replaced, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "./"+snippetsDir+"/...")
	build.Dir, build.Env = root, procs.Environ()
	var out bytes.Buffer
	build.Stdout, build.Stderr = &out, &out
	if err := build.Run(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// snippet is a block of Go, and the line in the page at which it begins, from 1.
type snippet struct {
	line int
	text string
}

func snippets(page string) []snippet {
	var found []snippet
	for _, m := range regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatchIndex(page, -1) {
		found = append(found, snippet{line: 1 + strings.Count(page[:m[2]], "\n"), text: page[m[2]:m[3]]})
	}
	return found
}
