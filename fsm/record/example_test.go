package record_test

import (
	"fmt"

	"github.com/claimq/claimq/fsm/record"
)

// label has one method that both reads and writes it, so that the two cannot differ.
type label struct{ name, value string }

func (l *label) fields(f *record.Fields) {
	f.Text(1, &l.name)
	f.Text(2, &l.value)
}

func Example() {
	out := record.To(nil)
	(&label{"env", "prod"}).fields(&out)
	fmt.Printf("%q\n", out.Out)

	var l label
	in := record.From(out.Out, nil)
	l.fields(&in)
	if err := in.End(); err != nil {
		panic(err)
	}
	fmt.Println(l.name, l.value)
	// Output:
	// "\n\x03env\x12\x04prod"
	// env prod
}
