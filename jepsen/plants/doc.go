// Package plants builds claimq, or the harness's worker, with a bug in it, so that the harness can be
// shown to catch it. A test that has never failed proves nothing.
//
// The product's source knows nothing of this: a plant is a change of its text
// that the build alone sees (go build -overlay). When the text has moved on, the
// plant says so and must be written again.
//
// The plants are in the .txt files of this folder, each a small patch:
//
//	plant NAME: what is wrong, in a sentence
//	faults a,b                       of a run that brings it to light
//	load 60 clients, 1200 calls a second   of that run, where it takes more than usual
//	readers 120                      connections of heavy reads in that run, where it takes more than usual
//	operations                       a run of package operations finds it, in place of one under faults
//	test PACKAGE REGEXP              tests that must find it, too
//	soak MIX                         the mix of faults with which the soak of package cluster finds it
//	row ROW                          of the contract, that shows it
//	in FILE
//	 a line that stays
//	-a line that goes
//	+a line that comes
//
// Tests of module jepsen also get a claimq with the bug, and run in their short form.
//
// The lines that stay and go must be in the file, in this order, once. A plant may have several
// edits, each with its own "in". Empty lines, and those that begin with #, say nothing.
package plants
