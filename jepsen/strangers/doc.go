// Package strangers has callers that are not ours: other programs and other languages, with the
// habits of their users, as rows of one table. Each is an [http.RoundTripper], so that what it
// asks and is answered goes into the history as any caller's does.
package strangers
