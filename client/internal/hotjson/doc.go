// Package hotjson reads and writes JSON for the Go client without reflection, and decides whether a document can be
// sent as JSON unchanged. It encodes and decodes the most frequent requests and answers of package api/wire; anything
// unexpected goes through encoding/json, so that only speed depends on this package, and that an Object refuses a Text that
// is not UTF-8.
//
// It knows no call of the API and makes none.
package hotjson
