// Package hotwire encodes and decodes the most frequent requests and answers of package api/wire without reflection.
// Anything unexpected goes through encoding/json, so that only speed depends on this package.
package hotwire
