// Package told reads the trail that a node tells, page by page, by whoever asks nodes
// for the harness: what judges go by must not come through the client library, which is
// judged, too.
package told
