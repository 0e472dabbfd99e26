// Package meter owns the metrics of the HTTP API: their names, help and labels, the counts
// of calls, refusals and finalizations, and what the state and the keys say of themselves
// when they are scraped. Labels that users choose are bounded. It knows no request and no
// connection: who has something to count says so, and what is only looked at when somebody
// scrapes comes by Sources.
package meter
