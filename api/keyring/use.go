package keyring

import (
	"net/netip"
	"time"
)

// Use is the time and address of a key's use.
type Use struct {
	At   time.Time
	From netip.Addr // zero value: unknown
}

// Used records that the key was used.
func (k *Caller) Used(now time.Time, from netip.Addr) {
	last := k.Last.Load()
	if last == nil || now.Sub(last.At) >= UseInterval {
		k.Last.CompareAndSwap(last, &Use{now, from})
	}
}

// UseInterval is the precision of a key's last use, because recording every use would slow down every request.
const UseInterval = time.Second
