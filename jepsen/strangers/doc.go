// Package strangers provides callers that are not ours: other programs and other languages,
// with the habits of their users, as rows of one table. Each is an [http.RoundTripper], so that
// its requests and answers are recorded in the history like any caller's.
package strangers
