package exchange

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// Headers that tell a key what is left of its rate.
var (
	nameRateLimit     = []byte("Ratelimit-Limit")
	nameRateRemaining = []byte("Ratelimit-Remaining")
	nameRateReset     = []byte("Ratelimit-Reset")
)

// limit counts a request for its key's rate, unless another node did.
func (r *Request) limit() *refuse.Refusal {
	if r.passed {
		return nil
	}
	return r.charge()
}

// charge counts a request for its key's rate.
func (r *Request) charge() *refuse.Refusal {
	k := r.Who
	if k.Bucket == nil {
		return nil
	}
	var ok bool
	if r.quota, ok = k.Bucket.Take(int64(r.Start.Sub(r.Server.Begun))); ok {
		return nil
	}
	k.Refused.Add(1)
	return refuse.New(wire.CodeRateLimited, "The key "+k.Name+" has made its "+strconv.FormatInt(k.Bucket.PerMinute, 10)+" requests a minute",
		"Nothing was done: repeat the request after the time in Retry-After, or have the key's rate_limit_per_minute raised")
}

// chargeRefused counts a settling call, or a batch of such ops, that was refused; successful ones do not count. The
// answer is not changed, because a worker must learn that its claim is over, even if its key's rate is used up.
func (r *Request) chargeRefused() {
	status := r.HTTP.Response.StatusCode()
	refused := r.OpRefused || status >= fasthttp.StatusBadRequest && status < fasthttp.StatusInternalServerError
	switch {
	case !r.settles || !refused:
	case r.passed:
		if r.OpRefused {
			r.HTTP.Response.Header.Set(HeaderOpRefused, "1")
		}
	case r.Who != nil && r.Who.Bucket != nil:
		r.quota, _ = r.Who.Bucket.Take(int64(r.Start.Sub(r.Server.Begun)))
		r.quota.RetryNS = 0
	}
}

// setQuota sets the headers that tell what is left after a counted request.
func setQuota(q *keyring.Quota, resp *fasthttp.Response) {
	var buf [20]byte
	h := &resp.Header
	h.SetCanonical(nameRateLimit, strconv.AppendInt(buf[:0], q.Limit, 10))
	h.SetCanonical(nameRateRemaining, strconv.AppendInt(buf[:0], q.Remaining, 10))
	h.SetCanonical(nameRateReset, strconv.AppendInt(buf[:0], keyring.Seconds(q.ResetNS), 10))
	if q.RetryNS > 0 {
		h.SetBytesV(fasthttp.HeaderRetryAfter, strconv.AppendInt(buf[:0], keyring.Seconds(q.RetryNS), 10))
	}
}
