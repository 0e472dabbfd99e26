package nodes_test

import (
	"errors"
	"fmt"

	"github.com/claimq/claimq/nodes"
)

// An overload is an ErrOverloaded that names what is full, so that one check covers all bounds.
func ExampleOverload() {
	err := fmt.Errorf("propose: %w", &nodes.Overload{Bound: nodes.BoundInFlight, Text: "16384 commands wait to be written"})
	fmt.Println(errors.Is(err, nodes.ErrOverloaded))
	if full, ok := errors.AsType[*nodes.Overload](err); ok {
		fmt.Println(full.Bound)
	}
	// Output:
	// true
	// in_flight
}
