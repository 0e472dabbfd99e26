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

// types are the types of the files that are served, by their extension. It is never changed.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

// The documents: the page, and what stands in its place in a build without libraries.
const (
	pageName = "index.html"
	bareName = "bare.html"
)

// libraries are the files without which there is no page. It is never changed.
var libraries = [...]string{"vendor/preact.mjs", "vendor/htm.mjs", "vendor/uPlot.esm.js", "vendor/uPlot.min.css"}

// folder is what stands for the folder of the files in the documents.
const folder = "a/HASH/"

// Headers are those of every answer with a file, beside its type. They are never changed.
var Headers = [...][2]string{
	{"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
}

// The values of Cache-Control: of a file under the address that has its hash, and of all else.
const (
	forever   = "public, max-age=31536000, immutable"
	askAgain  = "no-cache"
	hashBytes = 8
)

// File is what is answered at an address. It is never changed.
type File struct {
	Type   string // of its content
	Cache  string // the value of Cache-Control
	Plain  []byte
	Zipped []byte // by gzip
}

// Site is a page with all its files, each under an address with the hash of all of them. It
// is never changed.
type Site struct {
	hash     string
	document File
	files    map[string]File // by their path, with the Cache of the address that has the hash
}

// New returns the site of the files of a folder.
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

// hashOf returns the hash of all files: where each begins and ends is part of it.
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

// Hash says which page this is: two that differ in any file have different ones.
func (s *Site) Hash() string { return s.hash }

// Find returns the file at an address below the page's own, "" for the page itself. ok is
// false if there is none. Under the hash of another page there are this page's files: its
// node may have been upgraded, or be one that was not yet.
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
