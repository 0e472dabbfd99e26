// Package keyring owns who may call: API keys and tokens as they are configured, the ring
// in which a caller is found by what was sent, roles, task types, addresses, expiry, and
// what a caller has left of its rate. It decides who somebody is and says why not; it knows
// no connection, no call and no request. A Ring is never changed: a reload makes another.
package keyring
