// Package audit writes a node's audit file: each event of its trail as one line of JSON, in order and exactly once,
// even after crashes and when the file is moved away. It also writes the requests with known keys that the node has
// denied. It reads the trail and knows no requests. Only one process at a time can use the file.
package audit
