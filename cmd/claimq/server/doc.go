// Package server is the running server, `claimq server`: it fills the configurations of
// the node and of the API, puts them together, tells the service manager, reads keys and
// certificates again when their files change, and stops all of it in order.
//
// What is a setting is package config's, what a node does package cluster's, what is
// answered package api's. What NewCommand's command starts has ended when it returns, but
// for what is dropped when a stop takes longer than stopTimeout.
package server
