// Package hotwire reads the answers and writes the requests of package api/wire that a
// client has by the thousand, without reflection. What it does not expect is left to
// encoding/json, so that nothing depends on it but time.
package hotwire
