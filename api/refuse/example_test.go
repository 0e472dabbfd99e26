package refuse_test

import (
	"fmt"

	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// A code with a fixed text has it in one table, together with the advice for the caller.
func ExampleBecause() {
	fmt.Printf("%s\n", refuse.Append(nil, refuse.Because(wire.CodeTaskNotFound), []byte("req-1")))
	// Output: {"success":false,"error":"Task not found","code":"task_not_found","message":"Check the id or the key: there is no such task, or it was deleted","request_id":"req-1"}
}

// A refusal for a field names it, so that a program can point at it.
func ExampleParam() {
	r := refuse.Param("limit", "limit must be 1 to 1,000")
	fmt.Println(r.Code, r.Field)
	// Output: invalid_request limit
}
