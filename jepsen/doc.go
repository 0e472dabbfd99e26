// Command jepsen runs real claimq processes under load, injects failures of machines, disks
// and networks, and checks the answers that the callers got.
//
//	go run ./jepsen run --nodes 3 --time 60s --faults 'kill*,partition*' --seed 7
//	go run ./jepsen suite --runs 30
//	go run ./jepsen selftest
//	go run ./jepsen kill --tasks 20000 --kills 20 --seed 1
//	go run ./jepsen check FILE
//
// The README in this folder says what is checked and what is not.
package main
