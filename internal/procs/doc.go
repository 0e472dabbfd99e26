// Package procs runs claimq nodes as real processes on this machine, or on given hosts: for
// tests, measurements, and the runs under faults.
//
// Every process is ended by its pid, even when the program that started it dies. Ports stay
// the same over restarts and are not taken by other runs.
package procs
