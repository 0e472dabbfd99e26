// Package lane puts many calls into few requests, as a group commit does: while a request is out, calls queue, and
// the next request takes all of them. As long as there are few calls, each goes alone in its caller's goroutine, as
// if there were no lane.
//
// It knows neither HTTP nor the calls of the API; the creator of a Lane says how a group is sent, as a Joined body for
// example, whose Pooled answer its callers share.
package lane
