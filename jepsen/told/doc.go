// Package told reads the trail that a node tells, page by page, with net/http and
// nothing else of claimq's: what judges go by must not come through the client
// library, which is judged, too.
package told
