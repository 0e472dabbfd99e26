// Package hosts gives each node of a cluster a machine of its own on one
// machine, and lets the network between them be bad.
//
// A host is a network namespace, which needs root, with an address in 10.99.0.0/24. Its one
// cable, a TUN device, leads to a switch of ours, and nothing leads out: the switch
// passes packets on, and cuts links, loses, delays, duplicates and reorders by its seed.
//
// The namespaces have no names: they end with the processes in them and the
// program that made them, in whatever way that ends.
package hosts
