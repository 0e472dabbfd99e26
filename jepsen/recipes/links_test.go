package recipes

import (
	"encoding/xml"
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
	ownAnchor    = regexp.MustCompile(`<a id="([^"]+)">`)
	goFile       = regexp.MustCompile("`([a-z0-9_]+(?:/[a-z0-9_]+)*/[a-z0-9_]+\\.go)`")
	notInAnchors = regexp.MustCompile(`[^\pL\pN _-]`)
)

// Every link from a page into the tree leads to a file or folder, and to a heading if it
// has an anchor.
func TestPages_links(t *testing.T) {
	t.Parallel()
	pages, links := 0, 0
	anchors := map[string]map[string]bool{} // of the pages that are the targets of links with an anchor
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
			} else if anchor != "" && filepath.Ext(to) == ".md" {
				if anchors[to] == nil {
					anchors[to] = anchorsOf(withoutCode(t, to))
				}
				if !anchors[to][anchor] {
					t.Errorf("%s: %s names no anchor", path, m[1])
				}
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

// Every Go file that a page of docs names with its folder exists. A main.go is one that the
// reader creates.
func TestPages_goFiles(t *testing.T) {
	t.Parallel()
	var sources strings.Builder // each path between newlines
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			sources.WriteString(strings.TrimPrefix(path, "../..") + "\n")
		}
		return err
	})
	pages, globErr := filepath.Glob("../../docs/*.md")
	if err != nil || globErr != nil {
		t.Fatal(err, globErr)
	}
	names := 0
	for _, page := range append(pages, "../../CONTRIBUTING.md", "../../README.md", "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range goFile.FindAllStringSubmatch(string(text), -1) {
			names++
			if filepath.Base(m[1]) != "main.go" && !strings.Contains(sources.String(), "/"+m[1]+"\n") {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
	if names < 100 {
		t.Errorf("only %d names", names)
	}
}

// Every drawing is well formed, describes itself in words, and has colours for a dark page.
func TestPages_drawings(t *testing.T) {
	t.Parallel()
	drawings, err := filepath.Glob("../../docs/img/*.svg")
	if err != nil || len(drawings) < 4 {
		t.Fatalf("%v: %v", drawings, err)
	}
	for _, path := range drawings {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var drawing struct {
			XMLName xml.Name `xml:"svg"`
			Title   string   `xml:"title"`
		}
		if err := xml.Unmarshal(text, &drawing); err != nil || len(drawing.Title) < 50 {
			t.Errorf("%s: title %q, %v", path, drawing.Title, err)
		}
		if !strings.Contains(string(text), "prefers-color-scheme: dark") {
			t.Errorf("%s has no colours for a dark page", path)
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

// anchorsOf returns the anchors of a page: explicit ones, and those of its headings
// according to GitHub's rules.
func anchorsOf(page string) map[string]bool {
	anchors := map[string]bool{}
	for _, m := range ownAnchor.FindAllStringSubmatch(page, -1) {
		anchors[m[1]] = true
	}
	for _, m := range titleLine.FindAllStringSubmatch(page, -1) {
		heading := notInAnchors.ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(heading, " ", "-")] = true
	}
	return anchors
}
