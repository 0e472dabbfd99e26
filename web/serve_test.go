package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// folderOf returns a page with its libraries, and files that are not served.
func folderOf(t *testing.T, changed ...string) *Site {
	t.Helper()
	from := fstest.MapFS{}
	for name, content := range map[string]string{
		"index.html": `<script src="a/HASH/app.js"></script><link href="a/HASH/page.css">`, "bare.html": `bare <link href="a/HASH/page.css">`,
		"app.js": "app", "page.css": "css", "icon.svg": "icon", "parts/x.js": "x", "serve.go": "package web", "package.json": "{}", "vendor/README.md": "note",
		"vendor/preact.mjs": "p", "vendor/htm.mjs": "h", "vendor/uPlot.esm.js": "u", "vendor/uPlot.min.css": "c",
	} {
		from[name] = &fstest.MapFile{Data: []byte(content)}
	}
	for i := 0; i < len(changed); i += 2 {
		from[changed[i]] = &fstest.MapFile{Data: []byte(changed[i+1])}
		if changed[i+1] == "" {
			delete(from, changed[i])
		}
	}
	s, err := New(from)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSite(t *testing.T) {
	t.Parallel()
	s := folderOf(t)
	own := "a/" + s.Hash() + "/"
	for _, c := range []struct{ address, kind, cache, content string }{
		{"", "text/html; charset=utf-8", "no-cache", `<script src="` + own + `app.js"></script><link href="` + own + `page.css">`},
		{own + "app.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "app"},
		{own + "vendor/preact.mjs", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "p"},
		{own + "parts/x.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "x"},
		{own + "page.css", "text/css; charset=utf-8", "public, max-age=31536000, immutable", "css"},
		{own + "icon.svg", "image/svg+xml", "public, max-age=31536000, immutable", "icon"},
		{"a/0123456789abcdef/app.js", "text/javascript; charset=utf-8", "no-cache", "app"},
		{"a//app.js", "text/javascript; charset=utf-8", "no-cache", "app"},
	} {
		f, ok := s.Find(c.address)
		if !ok || f.Type != c.kind || f.Cache != c.cache || string(f.Plain) != c.content || unzip(t, f.Zipped) != c.content {
			t.Errorf("%q: %+v, %v", c.address, f, ok)
		}
	}
	for _, address := range []string{
		"index.html", "app.js", own, own + "index.html", own + "bare.html", own + "serve.go", own + "package.json", own + "vendor/README.md",
		own + "../app.js", own + "/app.js", "a/app.js", "a/" + s.Hash(), "b/" + s.Hash() + "/app.js", own + "none.js",
	} {
		if f, ok := s.Find(address); ok {
			t.Errorf("%q: %+v", address, f)
		}
	}
}

func unzip(t *testing.T, content []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// Every change of a served file changes the hash; other files do not matter.
func TestSite_Hash(t *testing.T) {
	t.Parallel()
	seen := map[string]int{folderOf(t).Hash(): 0}
	for i, changed := range [][]string{
		{"app.js", "app "},
		{"parts/x.js", ""},
		{"parts/y.js", "x"},
		{"index.html", "other"},
		{"app.js", "", "app.mjs", "app"},
		{"app.js", "ap", "icon.svg", "picon"},
	} {
		s := folderOf(t, changed...)
		if other, ok := seen[s.Hash()]; ok {
			t.Errorf("%v has the hash of %d", changed, other)
		}
		seen[s.Hash()] = i + 1
	}
	if _, ok := seen[folderOf(t, "serve.go", "package web // other").Hash()]; !ok {
		t.Error("what is not served has changed the hash")
	}
}

// Without any one of the libraries the other document replaces the page.
func TestSite_Bare(t *testing.T) {
	t.Parallel()
	for _, library := range libraries {
		s := folderOf(t, library, "")
		f, _ := s.Find("")
		if want := `bare <link href="a/` + s.Hash() + `/page.css">`; string(f.Plain) != want || unzip(t, f.Zipped) != want {
			t.Errorf("without %s: %s", library, f.Plain)
		}
	}
	if _, err := New(fstest.MapFS{"index.html": {}}); err == nil || !strings.Contains(err.Error(), "bare.html") {
		t.Errorf("a page without a document: %v", err)
	}
}

// The files that the documents name exist.
func TestBuilt(t *testing.T) {
	t.Parallel()
	s, err := Built()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pageName, bareName} {
		content, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		named := strings.Split(string(content), `"`+folder)[1:]
		if len(named) == 0 {
			t.Errorf("%s names no file", name)
		}
		for _, rest := range named {
			file, _, _ := strings.Cut(rest, `"`)
			if _, ok := s.Find("a/" + s.Hash() + "/" + file); !ok {
				t.Errorf("%s names %s, which is not there", name, file)
			}
		}
	}
}

// javaScriptMax bounds the JavaScript written for the page, including comments, because
// every browser reads all of it.
const javaScriptMax = 216 << 10

// The page's JavaScript stays within its budget.
func TestBuilt_JavaScript(t *testing.T) {
	t.Parallel()
	sum := 0
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".js") || strings.HasPrefix(path, "vendor/") {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += int(info.Size())
		}
		return err
	})
	if err != nil || sum > javaScriptMax || sum < javaScriptMax/2 {
		t.Errorf("the page has %d bytes of JavaScript, at most %d are to be, %v", sum, javaScriptMax, err)
	}
}
