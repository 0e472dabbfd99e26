// Package fuzz sends nodes what no client would: valid requests with parts
// changed, random bytes, random methods and headers, broken handshakes and frames
// on the peer port; and opens connections by the thousand that do next to nothing,
// with somebody beside them who must be answered. It judges the answers by what the
// contract allows, and compares what the nodes use before and after.
//
// All that is sent comes from the seed. What the nodes answer does not, and ids
// and tokens of answers are used in later requests: two runs of a seed are alike
// and not the same.
package fuzz
