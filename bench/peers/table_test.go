package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	one := installed{system: system{name: "one", durable: "nothing"}, release: "1.0"}
	two := installed{system: system{name: "two", durable: "a disk"}, release: "2.0"}
	table := newTable([]int{1, 64}, []installed{one, two})
	table.add("one", []float64{1000, 20000})
	table.add("two", []float64{500, 30000})
	table.add("two", []float64{400, 40000})
	table.add("one", []float64{200, 1234567})
	var out strings.Builder
	if err := table.print(&out, []string{"three: not there", "four: too old"}); err != nil {
		t.Fatal(err)
	}
	want := `| | version | a confirmation waits for | 1 and 1, tasks/s | 64 and 64, tasks/s |
| --- | --- | --- | --- | --- |
| one | 1.0 | nothing | 600 | 627,284 |
| two | 2.0 | a disk | 450 (1.25) | 35,000 (0.77) |

Faster than one: two at 1 and 1.

Not measured: three: not there

Not measured: four: too old
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	rates := "system,version,callers,tasks_per_s\none,1.0,1,1000\none,1.0,64,20000\none,1.0,1,200\none,1.0,64,1234567\n" +
		"two,2.0,1,500\ntwo,2.0,64,30000\ntwo,2.0,1,400\ntwo,2.0,64,40000\n"
	if got := string(table.csv()); got != rates {
		t.Errorf("the file of rates is\n%s\nwant\n%s", got, rates)
	}
	table = newTable([]int{1}, []installed{one})
	table.add("one", []float64{5})
	out.Reset()
	if err := table.print(&out, nil); err != nil || !strings.HasSuffix(out.String(), "| one | 1.0 | nothing | 5 |\n\nFaster than one: none.\n") {
		t.Errorf("%v, printed\n%s", err, out.String())
	}
}
