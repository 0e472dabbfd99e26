// Package conntest provides connections for the tests of the API.
package conntest
