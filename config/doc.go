// Package config turns a YAML file, CLAIMQ_* environment variables and flags into one validated struct. All three
// have the same settings: a flag overrides a variable, a variable overrides the file, and everything else has the
// default of DefaultServer.
//
// A setting has one name: node_id in the file, CLAIMQ_NODE_ID in the environment (levels are separated by "__"),
// --node-id as a flag. The package imports no other package of this module; cmd/claimq fills their configurations
// from it.
package config
