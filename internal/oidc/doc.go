// Package oidc checks tokens of one OpenID Connect issuer: JSON Web Tokens that it signed.
// It finds the issuer's keys by discovery, caches them and refreshes them in its own
// goroutine, so that checking a token never waits for the network. It does not know what a
// token permits.
package oidc
