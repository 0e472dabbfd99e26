// Package hotjson has what the Go client needs to write and read JSON without reflection:
// whether a document travels as it is, and the text of the hot requests.
//
// It knows no call of the API and makes none.
package hotjson
