// Package audit owns a node's audit file: each event of its trail as one line of JSON, in
// order, each once, over crashes and files that are moved away; and the requests with
// known keys that the node has denied. It reads the trail and knows no request. One
// process at a time has the file.
package audit
