// Package local runs nodes on this machine as processes of this binary: those of `claimq dev`, and those of `claimq
// bench`, which measures with package bench.
//
// Each command stops the nodes that it has started: when it returns, none of its processes is left.
package local
