// Package local runs nodes on this machine, as processes of this very binary: those of
// `claimq dev`, and those of `claimq bench`, which measures with package bench.
//
// Who starts nodes stops them: when a command here has returned, none of its processes is
// left.
package local
