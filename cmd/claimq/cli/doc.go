// Package cli has the commands of producers and workers, and those that look at tasks,
// types and workers: submit to work, one file for one command or for what several share.
// Each is a New...Command, which package main puts into the tree.
//
// A command asks a node by package session alone and shows by package term; it knows
// nothing of how a node works. What changes settings is said on the command line only, not
// by variables (term.OnlyExplicit).
package cli
