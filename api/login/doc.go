// Package login owns what a browser has of who logged in by the page: two halves, a cookie
// and a number, neither of any worth without the other, both signed with a secret of the
// cluster, so that every node knows them without a table. It knows no request and no keys
// but by their name and SHA-256 (docs/adr/0032).
package login
