// Package lease tells a leader when a lease has run out: it has the two clocks of a
// leadership, and the timers of live claims. It has no goroutine, runtime timer or log of
// its own: package cluster runs its loops, and the simulator (jepsen/sim) runs the same
// code with a clock of its own.
//
// It does not end claims. It names those whose time has come; the caller proposes their
// expiry, and the log decides.
package lease
