// Package server runs `claimq server`: it fills the configurations of the node and of the API, connects the two,
// notifies the service manager, reads keys and certificates again when their files change, and stops everything in
// order.
//
// Settings belong to package config, the node to package cluster, and answers to package api. Everything that the
// command starts has ended when it returns, except what is abandoned when a stop takes longer than stopTimeout.
package server
