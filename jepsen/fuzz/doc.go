// Package fuzz sends nodes what no client would send: valid requests with changed parts,
// random bytes, random methods and headers, broken handshakes and frames on the peer port.
// It also opens thousands of connections that do next to nothing while a guest must still
// be answered. It checks the answers against the contract, and compares the resources of
// the nodes before and after.
//
// Everything that is sent depends on the seed. The nodes' answers do not, and their ids and
// tokens are used in later requests, so two runs of a seed are similar but not the same.
package fuzz
