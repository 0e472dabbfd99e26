// Package demo implements `make demo`: three claimq processes do real work, the leader is
// killed in the middle of it, and at the end everything is counted.
package demo
