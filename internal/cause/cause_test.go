package cause_test

import (
	"bytes"
	_ "embed"
	"strings"
	"testing"

	"github.com/claimq/claimq/internal/cause"
)

// shapes are texts that programs have printed. Each comes after a line with its name and one with the line to find.
//
//go:embed testdata/shapes.txt
var shapes string

func TestLine_shapes(t *testing.T) {
	t.Parallel()
	n := 0
	for shape := range strings.SplitSeq(strings.TrimPrefix(shapes, "=== "), "\n=== ") {
		head, text, _ := strings.Cut(shape, "\n")
		want, text, _ := strings.Cut(text, "\n")
		want = strings.TrimPrefix(want, "--- ")
		for how, as := range map[string]string{"": text, ", with the line ends of Windows": strings.ReplaceAll(text, "\n", "\r\n")} {
			if got := string(cause.Traced([]byte(as))); got != want {
				t.Errorf("%s%s: %q, want %q", head, how, got, want)
			}
		}
		n++
	}
	if n < 20 {
		t.Errorf("there are %d shapes", n)
	}
}

func TestLine_noTrace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " \n\t": "", "timeout": "timeout", "\n\n  first line\r\nsecond": "first line",
		"could not send\nat mail.go:12":                                   "could not send",
		"goroutine 7 panicked\npanic: x":                                  "goroutine 7 panicked",
		"Traceback (most recent call last):":                              "Traceback (most recent call last):",
		"Traceback (most recent call last):\n  File \"a.py\", line 1":     "Traceback (most recent call last):",
		"we met at noon (again)\n    at noon":                             "we met at noon (again)",
		"http: panic serving 127.0.0.1:1: boom\ngoroutine 5 [running]:\n": "http: panic serving 127.0.0.1:1: boom",
	} {
		if got := string(cause.Line([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	for shape := range strings.SplitSeq(shapes, "=== ") {
		f.Add([]byte(shape))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line := cause.Line(text)
		switch {
		case !bytes.Contains(text, line) || len(bytes.TrimSpace(line)) != len(line):
			t.Errorf("%q: %q is no line of it", text, line)
		case len(line) == 0 && len(bytes.TrimSpace(text)) > 0:
			t.Errorf("%q: no line", text)
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for name, text := range map[string]string{"short": "timeout after 3000 ms", "traceback": shapes[:4000]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cause.Line([]byte(text))
			}
		})
	}
}
