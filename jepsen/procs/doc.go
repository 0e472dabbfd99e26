// Package procs runs claimq nodes as real processes on this machine, or on given hosts: for
// the kill tests, the tests of bad surroundings, the runs under faults and the demo.
//
// Every process is ended by its pid, even when the program that started it dies. Ports stay
// the same over restarts and are not taken by other runs.
package procs
