// Package keyring decides who may call. It holds the configured API keys and the settings for tokens, finds the
// caller for what was sent, with roles, task types, addresses and expiry, and tracks what a caller has left of its
// rate. It identifies the caller or says why not; it knows no connections, calls or requests. A Ring is never
// changed: a reload makes a new one.
package keyring
