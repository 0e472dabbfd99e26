package recipes

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// words are those that CONTRIBUTING.md has on its list.
type words struct {
	worst   *regexp.Regexp // wherever they are
	allowed *regexp.Regexp // at the end of a text
	who     *regexp.Regexp // as the subject of a statement
}

func readWords(t *testing.T) words {
	t.Helper()
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| not | but |")
	table, _, _ = strings.Cut(table, "\n\n")
	var worst, allowed []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z][^|]*) \|`).FindAllStringSubmatch(table, -1) {
		for phrase := range strings.SplitSeq(row[1], ", ") {
			if strings.HasSuffix(phrase, " allowed") {
				allowed = append(allowed, phrase)
			} else {
				worst = append(worst, phrase)
			}
		}
	}
	if len(worst) < 10 || len(allowed) != 1 {
		t.Fatalf("the list of words has %q and %q", worst, allowed)
	}
	return words{
		worst:   regexp.MustCompile(`(?i)\b(` + strings.Join(worst, "|") + `)\b`),
		allowed: regexp.MustCompile(`(` + strings.Join(allowed, "|") + `)$`),
		who:     regexp.MustCompile(`(?m)(?:^|[.:;] |\*\*)Who(?:ever)? [^.?*|]*[.;|]`),
	}
}

// No page has a word of the list, but for the list itself.
func TestWords_pages(t *testing.T) {
	t.Parallel()
	w := readWords(t)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%v: %v", pages, err)
	}
	generated := map[string]bool{"api.md": true, "cli.md": true, "contract.md": true} // summaries and field names begin as they like
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../examples/README.md", "../../deploy/prometheus/alerts.yml", "../../api/openapi.yaml") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		listed := false
		for i, line := range strings.Split(string(text), "\n") {
			listed = line == "| not | but |" || listed && line != ""
			if found := w.worst.FindString(line); found != "" && !listed {
				t.Errorf("%s:%d: %q is on the list of CONTRIBUTING.md", page, i+1, found)
			}
			if found := w.who.FindString(line); found != "" && filepath.Ext(page) == ".md" && !listed && !generated[filepath.Base(page)] {
				t.Errorf("%s:%d: say who does it: %q", page, i+1, found)
			}
		}
	}
}

// No help text, error or comment has a word of the list.
func TestWords_source(t *testing.T) {
	t.Parallel()
	w := readWords(t)
	texts := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "node_modules" || name == ".git") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		report := func(pos token.Pos, found string) {
			if found != "" {
				t.Errorf("%s: %q is on the list of CONTRIBUTING.md", files.Position(pos), found)
			}
		}
		for _, group := range file.Comments {
			texts++
			report(group.Pos(), w.worst.FindString(strings.ReplaceAll(group.Text(), "\n", " ")))
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				texts++
				report(text.Pos(), w.worst.FindString(text.Value))
				report(text.Pos(), w.allowed.FindString(strings.Trim(text.Value, "\"`")))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts < 10000 {
		t.Errorf("looked at %d texts", texts)
	}
}
