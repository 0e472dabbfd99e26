package recipes

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link         = regexp.MustCompile(`\]\(([^):\s]+)\)`) // into the tree: a path, an anchor, or both
	codeBlock    = regexp.MustCompile("(?ms)^```.*?^```$")
	titleLine    = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notInAnchors = regexp.MustCompile(`[^\pL\pN _-]`)
)

// Every link of every page into the tree leads to a file or folder, and to a
// heading if it has an anchor.
func TestPages_links(t *testing.T) {
	t.Parallel()
	pages, links := 0, 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "node_modules" || name == ".git" || name == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		pages++
		for _, m := range link.FindAllStringSubmatch(withoutCode(t, path), -1) {
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[1])
			} else if anchor != "" && filepath.Ext(to) == ".md" && !hasAnchor(withoutCode(t, to), anchor) {
				t.Errorf("%s: %s names no anchor", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 30 || links < 300 {
		t.Errorf("only %d links in %d pages", links, pages)
	}
}

// The figures of README are those of the pages that it names for them.
func TestREADME_figures(t *testing.T) {
	t.Parallel()
	_, rest, found := strings.Cut(withoutCode(t, "../../README.md"), "**Figures**")
	figures, _, _ := strings.Cut(rest, "\n\n")
	sources := withoutCode(t, "../../docs/benchmarks.md") + withoutCode(t, "../../docs/limits.md")
	numbers := regexp.MustCompile(`\d+(?:[.,]\d+)+|\b\d{3}\b`).FindAllString(figures, -1)
	if !found || len(numbers) < 5 {
		t.Fatalf("README has the figures %v", numbers)
	}
	for _, number := range numbers {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(number) + `\b`).MatchString(sources) {
			t.Errorf("no page has README's %s", number)
		}
	}
}

// withoutCode returns a page without its blocks of code.
func withoutCode(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return codeBlock.ReplaceAllString(string(text), "")
}

// hasAnchor reports whether a page has an anchor: one that it sets itself, or a
// heading's, as GitHub makes it.
func hasAnchor(page, anchor string) bool {
	if strings.Contains(page, `<a id="`+anchor+`">`) {
		return true
	}
	for _, m := range titleLine.FindAllStringSubmatch(page, -1) {
		heading := notInAnchors.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(heading, " ", "-") == anchor {
			return true
		}
	}
	return false
}
