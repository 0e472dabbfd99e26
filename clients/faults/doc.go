// Command faults is a cluster that answers by a script: redirects in a ring, connections cut
// behind the headers, half a body, a proxy's page, a 503 with Retry-After. The clients in all
// languages make the script's call against it, and have to come to its outcome by the requests
// that it expects.
//
//	faults SCRIPT
//
// It prints a line of JSON: the endpoints, the call, its time and its outcome. When its standard
// input ends it exits: with 0 if the requests were as in the script, else with 1 and the
// differences on standard error. Without an argument it prints the names of the scripts, one a line.
package main
