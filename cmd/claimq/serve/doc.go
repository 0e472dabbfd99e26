// Package serve runs the programs of `claimq work --serve`: they stay, and take task after task
// over a Unix socket. docs/protocol.md has what is said there. A client.Worker claims, extends and
// settles; a pool has the programs, starts those that have ended again, and hands each task to one
// that has room; a program is one connection and what is under way on it.
package serve
