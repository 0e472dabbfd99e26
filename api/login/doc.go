// Package login creates and checks logins of the page. A login has two halves, a cookie and a number, which are
// useless without each other. Both are signed with a secret of the cluster, so that every node can check them without
// a table. Of keys it knows only the name and SHA-256 (docs/adr/0032).
package login
