// Package openapitest checks claimq's answers against the description of its API, as served by /openapi.json: a
// status, header, code or field that the description does not have is an error. It is for tests and knows nothing of
// the server.
package openapitest
