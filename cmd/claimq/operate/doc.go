// Package operate holds the commands for operators: members of the cluster, snapshots, API keys, settings, and the
// health of a node and of its data folder.
//
// Most of them ask a node through package session. Those that work on a folder or a file (cluster recover, doctor,
// snapshot inspect, key generate, config show) ask no node. Some of them require that the node of that folder
// is stopped.
package operate
