// Package contract holds the contract's rows, each with the requests and
// answers that show it, as scripts in rows/. Its test runs them against three
// real processes; docs/contract.md is the generated list of rows and tests.
package contract
