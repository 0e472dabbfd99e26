// Package conntest has connections for the tests of the API. Only tests import it.
package conntest
