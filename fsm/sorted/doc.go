// Package sorted provides the ordered collections of the state machine, as B-trees: maps by
// key (Map), sets of ids (IDs), and lists in a custom order (List).
//
// They are interfaces to keep compilation fast: otherwise every package that uses a Machine
// would compile all methods of each tree in it again, some thousand functions.
package sorted
