// Package serve runs the programs of `claimq work --serve`. A program stays and takes task after
// task over a Unix socket; docs/protocol.md describes its messages. A client.Worker claims, extends
// and settles. A pool keeps the programs, starts those that have ended again and hands each task to
// one that has room. A program is one connection and the tasks on it.
package serve
