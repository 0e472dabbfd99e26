package web

import (
	"embed"
	"sync"
)

// files are the page's. New leaves out files of other types.
//
//go:embed *.html *.js *.css *.svg parts views vendor
var files embed.FS

// Built returns the page in this binary. The first call prepares it.
var Built = sync.OnceValues(func() (*Site, error) { return New(files) })
