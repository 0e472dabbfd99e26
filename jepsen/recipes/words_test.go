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

// words holds the list of words in CONTRIBUTING.md.
type words struct {
	worst   *regexp.Regexp // forbidden everywhere
	allowed *regexp.Regexp // allowed at the end of a text
	who     *regexp.Regexp // forbidden as the subject of a statement
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

// No page has a word of the list, except the list itself.
func TestWords_pages(t *testing.T) {
	t.Parallel()
	w := readWords(t)
	pages := files(t, "../../*.md", "../../docs/*.md", "../../docs/adr/*.md", "../../examples/*.md", "../../bench/*.md", "../../jepsen/*.md", "../../jepsen/contract/rows/*",
		"../../deploy/prometheus/*.yml", "../../api/openapi.yaml", "../../web/*.html")
	if len(pages) < 90 {
		t.Fatalf("found only %d pages", len(pages))
	}
	generated := map[string]bool{"api.md": true, "api-workers.md": true, "api-operators.md": true, "cli.md": true, "contract.md": true} // summaries and field names are free
	for _, page := range pages {
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

// files returns the files that match the patterns; each must match some.
func files(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		all = append(all, found...)
	}
	return all
}

// The page's own JavaScript has no word of the list, except for a parameter of its views,
// which no letter precedes.
func TestWords_page(t *testing.T) {
	t.Parallel()
	w := readWords(t)
	parameter := regexp.MustCompile(`([^a-z ] ?)anew\b`)
	for _, path := range files(t, "../../web/*.js", "../../web/parts/*.js", "../../web/views/*.js") {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(parameter.ReplaceAllString(string(source), "$1_"), "\n") {
			if found := w.worst.FindString(line); found != "" {
				t.Errorf("%s:%d: %q is on the list of CONTRIBUTING.md", path, i+1, found)
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
