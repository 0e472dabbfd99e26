// Package hosts gives each node of a cluster a machine of its own on one
// machine, and lets the network between them be bad.
//
// A host is a network namespace, which needs root, with an address in 10.99.0.0/24; all
// hosts hang on a bridge in a namespace of its own, the hub, and nothing leads
// out of them. The hub cuts links and loses packets; a switch of ours, through
// which links can be led instead, delays, duplicates and reorders them.
//
// The namespaces have no names: they end with the processes in them and the
// program that made them, in whatever way that ends.
package hosts
