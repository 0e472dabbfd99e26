// Package web is the page that every node serves: ES modules and CSS as they are written,
// with preact, htm and uplot as npm has them (vendor/README.md). It knows which files there
// are, under which addresses, and what must be said with them; it knows no HTTP library and
// nothing of the cluster.
package web
