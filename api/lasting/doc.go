// Package lasting counts the connections, waits and streams of each key. It gives one key at most half of what a node
// has, and ends waits and streams once their key has become invalid. Of connections and requests it knows only that
// they exist.
package lasting
