// Package plants builds claimq, or the harness's worker, with a bug in it, so that the harness can be
// shown to catch it. A test that has never failed proves nothing.
//
// The product's source knows nothing of this: a plant is a change of its text
// that the build alone sees (go build -overlay). When the text has moved on, the
// plant says so and must be written again.
package plants
