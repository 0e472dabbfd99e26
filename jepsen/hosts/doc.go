// Package hosts simulates a machine for each node of a cluster on one machine, with a
// network between them that can be made bad.
//
// A host is a network namespace, which needs root, with an address in 10.99.0.0/24. Its
// only cable, a TUN device, leads to a switch in this package, and nothing leads outside.
// The switch forwards packets, cuts links, and loses, delays, duplicates and reorders
// packets by its seed.
//
// The namespaces have no names, so they end with the processes in them and the program that
// made them, no matter how that ends.
package hosts
