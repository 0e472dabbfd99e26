package keyring

import (
	"net/netip"
	"time"
)

// Use is when and from where a key was used.
type Use struct {
	At   time.Time
	From netip.Addr // the zero value: unknown
}

// Used notes that the key was used.
func (k *Caller) Used(now time.Time, from netip.Addr) {
	last := k.Last.Load()
	if last == nil || now.Sub(last.At) >= UseInterval {
		k.Last.CompareAndSwap(last, &Use{now, from})
	}
}

// UseInterval is how exact the time of a key's last use is: noting each would cost
// every request.
const UseInterval = time.Second
