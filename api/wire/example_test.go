package wire_test

import (
	"fmt"

	"github.com/claimq/claimq/api/wire"
)

// Each code has one HTTP status, which clients can rely on.
func ExampleCode() {
	fmt.Println(wire.CodeStaleClaim, wire.CodeStaleClaim.Status())
	// Output: stale_claim 409
}

// A worker id is checked by the same rule in the server and in clients.
func ExampleValidWorkerID() {
	fmt.Println(wire.ValidWorkerID("celery@web1.prod"), wire.ValidWorkerID("not a\nname"), wire.ValidWorkerID(".."))
	// Output: true false false
}
