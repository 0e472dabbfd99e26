package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// types maps the extensions of files that are served to their types. It is never changed.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

// The documents: the page, and its replacement in a build without libraries.
const (
	pageName = "index.html"
	bareName = "bare.html"
)

// libraries lists the files that the page needs. It is never changed.
var libraries = [...]string{"vendor/preact.mjs", "vendor/htm.mjs", "vendor/uPlot.esm.js", "vendor/uPlot.min.css"}

// folder is the placeholder in the documents for the folder of the files.
const folder = "a/HASH/"

// Headers are sent with every file, in addition to its type. They are never changed.
var Headers = [...][2]string{
	{"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
}

// Values of Cache-Control: for files at an address with the hash, and for all others.
const (
	forever   = "public, max-age=31536000, immutable"
	askAgain  = "no-cache"
	hashBytes = 8
)

// File is the answer at an address. It is never changed.
type File struct {
	Type   string // of its content
	Cache  string // the value of Cache-Control
	Plain  []byte
	Zipped []byte // with gzip
}

// Site is a page with all its files, each at an address with the hash of all of them. It is
// never changed.
type Site struct {
	hash     string
	document File
	files    map[string]File // by path, with the Cache for the address with the hash
}

// New returns the site made of the files in a folder.
func New(from fs.FS) (*Site, error) {
	contents := make(map[string][]byte)
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || types[path.Ext(name)] == "" {
			return err
		}
		contents[name], err = fs.ReadFile(from, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	s := &Site{hash: hashOf(contents), files: make(map[string]File)}
	name := pageName
	if slices.ContainsFunc(libraries[:], func(l string) bool { return contents[l] == nil }) {
		name = bareName
	}
	for at, content := range contents {
		f := File{Type: types[path.Ext(at)], Cache: forever, Plain: content}
		switch {
		case at == name:
			f.Cache = askAgain
			f.Plain = bytes.ReplaceAll(content, []byte(folder), []byte("a/"+s.hash+"/"))
			if f.Zipped, err = zipped(f.Plain); err != nil {
				return nil, err
			}
			s.document = f
		case path.Ext(at) != ".html":
			if f.Zipped, err = zipped(f.Plain); err != nil {
				return nil, err
			}
			s.files[at] = f
		}
	}
	if s.document.Plain == nil {
		return nil, fmt.Errorf("the page has no %s", name)
	}
	return s, nil
}

// hashOf returns the hash of all files, including their boundaries.
func hashOf(contents map[string][]byte) string {
	h := sha256.New()
	names := make([]string, 0, len(contents))
	for name := range contents {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h.Write([]byte(name + "\x00" + strconv.Itoa(len(contents[name])) + "\x00"))
		h.Write(contents[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:hashBytes])
}

func zipped(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress the page: %w", err)
	}
	return b.Bytes(), nil
}

// Hash identifies the page: two pages that differ in any file have different hashes.
func (s *Site) Hash() string { return s.hash }

// Find returns the file at an address below the page's own, "" for the page itself. ok is
// false if there is no such file. Under the hash of another page it returns this page's files,
// because nodes may be in the middle of an upgrade.
func (s *Site) Find(address string) (f File, ok bool) {
	if address == "" {
		return s.document, true
	}
	rest, ok := strings.CutPrefix(address, "a/")
	if !ok {
		return f, false
	}
	hash, name, _ := strings.Cut(rest, "/")
	if f, ok = s.files[name]; ok && hash != s.hash {
		f.Cache = askAgain
	}
	return f, ok
}
