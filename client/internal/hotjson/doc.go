// Package hotjson reads and writes JSON for the Go client without reflection, and decides whether a document can be
// sent as JSON unchanged.
//
// It knows no call of the API and makes none.
package hotjson
