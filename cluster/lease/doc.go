// Package lease is what a leader needs to know when a lease has run out: the
// two clocks of a leadership, and the timers of the live claims. It decides and
// keeps no goroutine, no timer of the runtime and no log: package cluster runs
// its loops, and the simulator (jepsen/sim) runs the same code on a clock of its
// own.
//
// What it does not do: it ends no claim. It names the claims whose time has
// come; the caller proposes their expiry, and the log decides.
package lease
