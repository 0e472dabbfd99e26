package clienttest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/client/kind"
)

var mails = kind.New[Mail, kind.None]("mail")

// signUp is the program under test: it sends a welcome mail to each guest.
func signUp(ctx context.Context, c *client.Client, guests ...string) error {
	for _, guest := range guests {
		if _, err := mails.Submit(ctx, c, Mail{To: guest}); err != nil {
			return err
		}
	}
	return nil
}

// A test of what a program submits needs no worker.
func ExampleWantSubmitted() {
	var t example
	defer t.end()
	s := clienttest.New(&t)
	if err := signUp(context.Background(), s.Client(), "ada", "bob"); err != nil {
		t.Fatalf("sign up: %v", err)
	}
	clienttest.WantSubmitted(s, mails, Mail{To: "ada"}, Mail{To: "bob"})
	clienttest.WantSubmitted(s, mails, Mail{To: "ada"})
	fmt.Println(clienttest.Submitted(s, mails)[1].To)
	// Output:
	// clienttest: submitted of the kind mail:
	// 	{"to":"ada"}
	// 	{"to":"bob"}
	// want:
	// 	{"to":"ada"}
	// bob
}

// told is a testing.TB that records messages.
type told struct {
	testing.TB
	lines []string
}

func (t *told) Helper() {}
func (t *told) Errorf(format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}
func (t *told) Fatalf(format string, args ...any) { t.Errorf(format, args...) }

func TestWantSubmitted(t *testing.T) {
	t.Parallel()
	test := &told{TB: t}
	s := clienttest.New(test)
	ctx := t.Context()
	clienttest.WantSubmitted(s, mails)
	if test.lines != nil {
		t.Errorf("nothing, and nothing is wanted: %q", test.lines)
	}
	clienttest.WantSubmitted(s, mails, Mail{To: "ada"})
	if want := "clienttest: submitted of the kind mail:\n\tnone\nwant:\n\t{\"to\":\"ada\"}"; len(test.lines) != 1 || test.lines[0] != want {
		t.Errorf("nothing: %q", test.lines)
	}
	test.lines = nil

	// Claimed and ended tasks count, too; other types do not.
	if err := signUp(ctx, s.Client(), "ada", "bob"); err != nil {
		t.Fatal(err)
	}
	submit(t, s, client.Task{TaskType: "other", Payload: []byte("1")})
	if err := claim(t, s, "w1").Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	clienttest.WantSubmitted(s, mails, Mail{To: "ada"}, Mail{To: "bob"})
	if test.lines != nil {
		t.Errorf("as it is: %q", test.lines)
	}
	clienttest.WantSubmitted(s, mails, Mail{To: "bob"}, Mail{To: "ada"})
	if len(test.lines) != 1 {
		t.Errorf("the other order: %q", test.lines)
	}
	if tasks := s.Tasks("mail"); len(tasks) != 2 || tasks[0].Status != client.StatusCompleted || tasks[1].Status != client.StatusPending {
		t.Errorf("the tasks are %v", tasks)
	}

	test.lines = nil
	submit(t, s, client.Task{TaskType: "mail", Payload: []byte("7")})
	if got := clienttest.Submitted(s, mails); got != nil || len(test.lines) != 1 || !strings.Contains(test.lines[0], "params of task 4 (mail): json: cannot unmarshal number") {
		t.Errorf("params of something else: %v, %q", got, test.lines)
	}
}
