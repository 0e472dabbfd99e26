// Package config turns a YAML file, CLAIMQ_* environment variables and flags
// into one validated struct. They say the same things; a flag beats a
// variable, a variable beats the file, and what none of them sets has the
// default of DefaultServer.
//
// A setting has one name: node_id in the file, CLAIMQ_NODE_ID in the
// environment (levels would be separated by "__"), --node-id as a flag. It
// imports nothing of ours: package cmd/claimq fills the other packages'
// configurations from it.
package config
