package errorgroup

import (
	"strconv"
	"strings"
	"testing"
)

// corpus has a cause each, as programs report it: $n differs from error to error, and so does $f, the file. Causes of the
// shape "a" || "b" are reported in both ways.
var corpus = []string{
	// Commands of `claimq work`.
	"550 mailbox unavailable (exit code 100)\nconnecting $n\n550 mailbox unavailable",
	"curl: ($n) Operation timed out (exit code 1)\ntry $n\ncurl: ($n) Operation timed out",
	"exit code 2",
	"exit code 3",
	"KeyError: 'total' (exit code 1)\n" + pythonHead + "KeyError: 'total'",
	// Python.
	pythonHead + "KeyError: 'user_$n'",
	pythonHead + "ConnectionRefusedError: [Errno 111] Connection refused" + " || " +
		pythonHead + "ConnectionRefusedError: [Errno 111] Connection refused" + pythonCause + pythonHead + "JobFailed: job $n failed",
	pythonHead + "TimeoutError: timed out" + pythonCause + pythonHead + "JobFailed: job $n failed",
	pythonHead + "ValueError: invalid literal for int() with base 10: '$n,5'",
	pythonHead + "Bounce: 550 no such user\nremote said:\n  $n",
	// Node.
	"Error: connect ECONNREFUSED 10.0.0.$n:5432\n" + nodeFrames + " || Error: job $n failed\n" + nodeFrames + " {\n  [cause]: Error: connect ECONNREFUSED 10.0.0.$n:5432\n  " + nodeFrames + "\n}",
	"/srv/$f.js:$n\n  throw e;\n  ^\n\nTypeError: Cannot read properties of undefined (reading 'name')\n" + nodeFrames + "\n\nNode.js v20.20.2",
	"TypeError [ERR_INVALID_URL]: Invalid URL\n" + nodeFrames,
	"/srv/$f.js:$n\n  throw e;\n  ^\n\nRangeError: Maximum call stack size exceeded\n" + nodeFrames,
	// Java.
	"java.sql.SQLException: deadlock detected on row $n\n" + javaFrames + " || com.example.JobFailed: job $n failed\n" + javaFrames + "\nCaused by: java.sql.SQLException: deadlock detected on row $n\n" + javaFrames + "\n\t... $n more",
	"com.example.JobFailed: job $n failed\n" + javaFrames + "\nCaused by: java.net.SocketTimeoutException: Read timed out\n" + javaFrames,
	"java.lang.NullPointerException: Cannot invoke \"Order.total()\" because \"order\" is null\n" + javaFrames,
	// Go.
	"panic: runtime error: index out of range [$n] with length $n" + goStack,
	"panic: assignment to entry in nil map" + goStack + " || panic: assignment to entry in nil map [recovered]\n\tpanic: job $n" + goStack,
	// Ruby.
	"$f.rb:$n:in `fetch': key not found: \"user_$n\" (KeyError)\n\tfrom $f.rb:$n:in `<main>'",
	"$f.rb:$n:in `rescue in call': job $n failed (JobFailed)\n\tfrom $f.rb:$n:in `<main>'\n$f.rb:$n:in `call': execution expired (Net::OpenTimeout)\n\tfrom $f.rb:$n:in `<main>'",
	// PHP.
	"PHP Fatal error:  Uncaught PDOException: SQLSTATE[HY000] [2002] Connection refused in /srv/$f.php:$n\nStack trace:\n#0 /srv/$f.php($n): f()\n#1 {main}\n\nNext JobFailed: job $n in /srv/$f.php:$n\nStack trace:\n#0 {main}",
	"RuntimeException: no price for order $n in /srv/$f.php:$n\nStack trace:\n#0 /srv/$f.php($n): f()\n#1 {main}",
	// Texts of handlers.
	"timeout after $n ms",
	"dial tcp 10.0.0.$n:5432: connect: connection refused",
}

const (
	pythonHead  = "Traceback (most recent call last):\n  File \"/srv/$f.py\", line $n, in <module>\n    run($n)\n    ^^^^^^^\n"
	pythonCause = "\n\nThe above exception was the direct cause of the following exception:\n\n"
	nodeFrames  = "    at f (/srv/$f.js:$n:7)\n    at node:internal/main/run_main_module:28:49"
	javaFrames  = "\tat com.example.Main.f(Main.java:$n)\n\tat com.example.Main.main(Main.java:$n)"
	goStack     = "\n\ngoroutine $n [running]:\nmain.main()\n\t/srv/$f.go:$n +0x65"
)

// A hundred errors of 25 causes are 25 groups: one cause is one group, and two causes are two.
func TestOf_corpus(t *testing.T) {
	t.Parallel()
	groups, errs := map[ID]int{}, 0
	for of, shapes := range corpus {
		ways := strings.Split(shapes, " || ")
		first := ID(0)
		for i := range 4 {
			err := strings.NewReplacer("$n", strconv.Itoa(17+of*31+i*7), "$f", "app"+strings.Repeat("x", i)).Replace(ways[i%len(ways)])
			id := Of("job", err)
			if i == 0 {
				first = id
			}
			if id != first {
				t.Errorf("cause %d has two groups; the second is %q of\n%s", of, Signature(err), err)
			}
			if before, known := groups[id]; known && before != of {
				t.Errorf("causes %d and %d have one group, %q", before, of, Signature(err))
			}
			groups[id] = of
			errs++
		}
	}
	if len(groups) != 25 || errs != 100 {
		t.Errorf("%d errors have %d groups, want 100 and 25", errs, len(groups))
	}
}
