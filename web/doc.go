// Package web contains the page that every node serves: unbundled ES modules and CSS, with
// preact, htm and uplot from npm (vendor/README.md). It knows which files exist, at which
// addresses, and their headers; it is independent of HTTP libraries and the cluster.
package web
