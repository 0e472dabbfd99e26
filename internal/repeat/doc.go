// Package repeat decides what a client does after one try of a call: take the
// answer, follow a redirect, try again and how much later, or give up because
// nobody can tell the outcome. It has no clock, no network and no
// goroutine: package client runs its tries with real requests, and the
// simulator (jepsen/sim) with simulated ones.
package repeat
