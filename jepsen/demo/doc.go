// Command demo is what `make demo` runs: three claimq processes do real work,
// the leader is killed in the middle of it, and at the end everything is
// counted. It exits with 1 if anything does not add up.
package main
