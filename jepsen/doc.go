// Command jepsen runs real claimq processes, lets them be killed under load,
// and checks what the callers were answered.
//
//	go run ./jepsen kill --tasks 50000 --kills 20 --seed 1
//	go run ./jepsen check FILE
//
// The README beside it says what is checked and what is not.
package main
