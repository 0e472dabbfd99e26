// Command jepsen runs real claimq processes under load, injects failures of machines, disks
// and networks, and checks the answers that the callers got.
//
//	go -C jepsen run . run --nodes 3 --time 60s --faults 'kill*,partition*' --seed 7
//	go -C jepsen run . suite --runs 30
//	go -C jepsen run . selftest
//	go -C jepsen run . kill --tasks 20000 --kills 20 --seed 1
//	go -C jepsen run . check FILE
//
// The README in this folder says what is checked and what is not.
package main
