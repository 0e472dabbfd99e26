// Command jepsen runs real claimq processes under load, does to them what
// machines, disks and networks do, and judges what the callers were answered.
//
//	go run ./jepsen run --nodes 3 --time 60s --faults 'kill*,partition*' --seed 7
//	go run ./jepsen suite --runs 30
//	go run ./jepsen selftest
//	go run ./jepsen kill --tasks 20000 --kills 20 --seed 1
//	go run ./jepsen check FILE
//
// The README beside it says what is checked and what is not.
package main
