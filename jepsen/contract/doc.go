// Package contract contains the rows of the contract, each with the requests and answers
// that show it, as scripts in rows/. Its test runs them against three real processes;
// docs/contract.md is the generated list of rows and tests.
package contract
