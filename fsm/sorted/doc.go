// Package sorted holds what the state machine goes through in an order: by keys (Map), of
// ids (IDs), and in an order of one's own (List). They are B-trees.
//
// They are interfaces for the compiler's sake: a package that has a Machine in sight would
// compile all methods of each tree in it once more, some thousand functions.
package sorted
