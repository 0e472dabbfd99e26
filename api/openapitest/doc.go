// Package openapitest holds answers of claimq against the description of its
// API, as /openapi.json serves it: whatever an answer has that the description
// does not, its status, a header, a code or a field, is an error. It is for tests
// and knows nothing of the server.
package openapitest
