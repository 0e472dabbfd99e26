// Package operate has the commands of operators: members of the cluster, snapshots, API
// keys, settings, the health of a node and of its data folder, and top.
//
// Most ask a node by package session. Those that work on a folder or a file (cluster
// recover, doctor, snapshot inspect, key generate, config show) ask none, and want the
// node of that folder to be stopped where they say so.
package operate
