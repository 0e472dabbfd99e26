// Package lasting owns what lasts of each key: its connections, waits and streams. It counts
// them, gives one key at most half of what a node has, and ends what waits once the key is
// not what it was. It knows keys, and of a connection and a request only that they are there.
package lasting
