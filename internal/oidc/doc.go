// Package oidc checks tokens of one OpenID Connect issuer: JSON Web Tokens that it
// signed. It finds the issuer's keys by discovery, keeps them, and fetches them again in
// a goroutine of its own: whoever asks about a token waits for no network. It knows
// nothing of what a token is good for.
package oidc
