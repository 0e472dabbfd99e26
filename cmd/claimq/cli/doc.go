// Package cli holds the commands for producers and workers, and the commands that show tasks, types and workers. One
// file holds one command, or what several of them share. Each New...Command returns one command, and package main
// puts them into the tree.
//
// A command asks a node through package session alone and prints through package term. It does not know how a node
// works. Flags that change settings must be on the command line: no variable sets them (term.OnlyExplicit).
package cli
