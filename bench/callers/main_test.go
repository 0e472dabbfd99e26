package main

import (
	"strings"
	"testing"
)

const header = "system,version,callers,tasks_per_s\n"

func TestDraw(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	in := header + "claimq,1,1,500\nclaimq,1,100,30000\nclaimq,1,10000,900\nclaimq,1,10000,40000\nclaimq,1,10000,38000\nNATS,2,1,300\nNATS,2,100,6000\nNATS,2,10000,9500\n"
	if err := draw(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title id=\"t\">Tasks a second over the number of callers. claimq 1: 500 with 1, 30,000 with 100, 38,000 with 10,000. NATS 2: 300 with 1, 6,000 with 100, 9,500 with 10,000.</title>",
		// Of 40,000 tasks/s 266 pixels; a hundredfold of callers is half of the width.
		`<path class="line one" d="M64.0 306.7L332.0 110.5L600.0 57.3"/>`,
		`<path class="line two" d="M64.0 308.0L332.0 270.1L600.0 246.8"/>`,
		`text-anchor="end">40,000</text>`,
		`<text class="small mid" x="600.0" y="330">10,000</text>`,
		`<text class="bold" x="612" y="55.3">claimq</text>`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %s in\n%s", want, out.String())
		}
	}
}

func TestDraw_refuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                             "there are no figures",
		header:                         "there are no figures",
		header + "a,1,x,5\n":           `line 2: callers is "x"`,
		header + "a,1,0,5\n":           `line 2: callers is "0"`,
		header + "a,1,1,5\na,1,2,-1\n": `line 3: tasks_per_s is "-1"`,
		header + "a,1,1\n":             "wrong number of fields",
		header + "a,1,1,5\nb,1,2,5\n":  "a was measured with [1] callers, b with [2]",
		header + "a,,1,5\nb,,1,5\nc,,1,5\nd,,1,5\ne,,1,5\n": "there are 5 systems, at most 4",
	} {
		if err := draw(strings.NewReader(in), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestStepOf(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]float64{4: 1, 7.9: 1, 8: 2, 19: 2, 20: 5, 39: 5, 40: 10, 38_000: 5_000, 45_000: 10_000} {
		if got := stepOf(most); got != want {
			t.Errorf("of %v: %v, want %v", most, got, want)
		}
	}
}
