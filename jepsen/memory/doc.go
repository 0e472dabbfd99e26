// Package memory asks every call of the API over hundreds of connections at once, on a state that
// is built to make the answers large, reads the answers slowly, and tells how much memory the
// nodes' processes took meanwhile.
package memory
