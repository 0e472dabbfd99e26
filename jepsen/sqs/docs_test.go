package sqs

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/claimq/claimq/internal/procs"
)

// goProgram is a program around the example for Go.
const goProgram = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func main() {
EXAMPLE
	got, err := client.ListQueues(context.Background(), &sqs.ListQueuesInput{})
	if err != nil {
		panic(err)
	}
	fmt.Println(got.QueueUrls)
}
`

// The examples of docs/sqs.md do what they say, with the credentials that it shows. The rest are for languages that are
// not here.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/sqs.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string][]string{}
	for _, block := range regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		examples[block[1]] = append(examples[block[1]], block[2])
	}
	yaml, ok := strings.CutPrefix(examples["yaml"][0], "credentials:\n")
	if !ok {
		t.Fatalf("no credentials: %q", examples["yaml"])
	}
	ctx, cluster := start(t, 1, yaml)
	url := cluster.Nodes[0].URL()
	sdk := newSDK(url, secret)
	for _, name := range []string{"invoices", "letters", "others"} {
		if _, err := sdk.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(t *testing.T, dir string, command ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH=/usr/bin:"+os.Getenv("PATH"), "AWS_ACCESS_KEY_ID=BILLING", "AWS_SECRET_ACCESS_KEY=change-me-to-something-long", "AWS_EC2_METADATA_DISABLED=true", "ENDPOINT="+url)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "/000000000000/letters") || strings.Contains(string(out), "others") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	ran := 0
	for language, blocks := range examples {
		for _, block := range blocks {
			if language == "go" { // the same program each time, which is linked once
				block = strings.Replace(block, `"http://127.0.0.1:7400"`, `os.Getenv("ENDPOINT")`, 1)
			}
			block = strings.NewReplacer("http://127.0.0.1:7400", url, "127.0.0.1:7400", cluster.Nodes[0].HTTPAddr).Replace(block)
			switch language {
			case "console", "yaml", "java", "csharp", "php", "ruby": // the first: TestDocs_dev
				continue
			case "sh":
				run(t, ".", "sh", "-ec", block)
			case "python":
				more := `print(sqs.list_queues()["QueueUrls"])`
				if strings.Contains(block, "celery") {
					more = "app.send_task('work')\nprint(app.connection().default_channel._queue_cache)"
				}
				run(t, ".", python, "-c", block+more)
			case "javascript":
				node, err := filepath.Abs(javascript(t)[0])
				if err != nil {
					t.Fatal(err)
				}
				run(t, "testdata/js", node, "--input-type=module", "-e", strings.Replace(block, "{ SQSClient }", "{ SQSClient, ListQueuesCommand }", 1)+"console.log((await client.send(new ListQueuesCommand())).QueueUrls)")
			case "go":
				file := filepath.Join(t.TempDir(), "main.go")
				if err := os.WriteFile(file, []byte(strings.Replace(goProgram, "EXAMPLE", block, 1)), 0o600); err != nil {
					t.Fatal(err)
				}
				run(t, ".", "go", "run", file)
			default:
				t.Errorf("an example for %s is not run", language)
			}
			ran++
		}
	}
	if ran != 5 {
		t.Errorf("%d examples were run", ran)
	}
	if err := empty(ctx, sdk, url+"/000000000000/letters"); err == nil {
		t.Error("Celery's task is not there")
	}
}

// What docs/sqs.md says to begin with works: claimq dev, and a message by the AWS CLI.
func TestDocs_dev(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/sqs.md")
	if err != nil {
		t.Fatal(err)
	}
	base, release, err := procs.TakePortsFrom(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	text := strings.ReplaceAll(string(page), "127.0.0.1:7400", "127.0.0.1:"+strconv.Itoa(base))
	blocks := regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	dir := t.TempDir()
	binary, err := procs.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	arguments, ok := strings.CutPrefix(blocks[0][1], "$ claimq ")
	if !ok {
		t.Fatalf("no claimq: %q", blocks[0])
	}
	dev := exec.CommandContext(t.Context(), binary, append(strings.Fields(arguments), "--nodes", "1", "--data-dir", dir+"/data", "--port", strconv.Itoa(base))...)
	dev.SysProcAttr = procs.ChildAttr()
	out, err := dev.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dev.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := dev.Wait(); err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(out)
	for ready := false; !ready; ready = strings.HasPrefix(lines.Text(), "leader: ") {
		if !lines.Scan() {
			t.Fatalf("it ended without a leader: %v", lines.Err())
		}
	}
	commands := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(blocks[1][1], "$ ", ""))
	commands.Env = append(os.Environ(), "PATH=/usr/bin:"+os.Getenv("PATH"), "AWS_EC2_METADATA_DISABLED=true")
	if got, err := commands.CombinedOutput(); err != nil || !strings.Contains(string(got), `"Body": "hello"`) {
		t.Errorf("%v\n%s", err, got)
	}
}
