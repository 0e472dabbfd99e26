// Package meter defines the metrics of the HTTP API: their names, help and labels, the counts of calls, refusals and
// finalizations, and the values of the state and the keys, read on each scrape. Labels that users choose are bounded.
// It knows no requests or connections: they are counted by their callers, and values for a scrape come from Sources.
package meter
