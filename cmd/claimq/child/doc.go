// Package child starts the programs that `claimq work` runs, one for each task or one for many, reads their output,
// and ends them.
package child
