package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// mistakeAnswered bounds the time until a mistake is reported.
const mistakeAnswered = 5 * time.Second

// Common mistakes of new users are reported in time, with advice.
func TestMistakes(t *testing.T) {
	t.Parallel()
	c := newProcesses(t, 1, 0)
	c.start(c.Nodes...)
	c.submit(1)
	node := c.Nodes[0].URL()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notThere := filepath.Join(dir, "not-there")
	noServer := []string{"CLAIMQ_ENDPOINTS=http://127.0.0.1:1"}
	for name, m := range map[string]struct {
		args []string
		env  []string // nil: the node's address
		code int
		says string // the advice, or the right form
	}{
		"no server":                     {[]string{"stats", "--timeout", "500ms"}, noServer, term.ExitUnknown, "connection refused\nStart nodes with 'claimq dev'"},
		"no server to submit to":        {[]string{"submit", "mail", "--timeout", "500ms"}, noServer, term.ExitUnknown, "--endpoint or CLAIMQ_ENDPOINTS"},
		"TLS where there is none":       {[]string{"stats", "--timeout", "500ms"}, []string{"CLAIMQ_ENDPOINTS=" + strings.Replace(node, "http", "https", 1)}, term.ExitUnknown, "must begin with http://"},
		"an endpoint without http":      {[]string{"stats"}, []string{"CLAIMQ_ENDPOINTS=localhost:7400"}, term.ExitUsage, "as http://localhost:7400"},
		"a slip in a command":           {[]string{"sumbit", "mail"}, nil, term.ExitUsage, "Did you mean 'claimq submit'?"},
		"a slip in help":                {[]string{"help", "shedule"}, nil, term.ExitUsage, "Did you mean 'claimq schedule'?"},
		"a slip in a flag":              {[]string{"submit", "mail", "1", "--prio", "4"}, nil, term.ExitUsage, "Did you mean '--priority'?"},
		"no type":                       {[]string{"submit"}, nil, term.ExitUsage, "TYPE is missing\nUsage: claimq submit TYPE [PARAMS | @FILE | -] | [TYPE] --file FILE"},
		"no id":                         {[]string{"get"}, nil, term.ExitUsage, "ID is missing\nUsage: claimq get ID | --key KEY"},
		"no command to run":             {[]string{"work", "--type", "mail"}, nil, term.ExitUsage, "COMMAND is missing\nUsage: claimq work --type TYPE"},
		"no type to work on":            {[]string{"work", "--", "true"}, nil, term.ExitUsage, "--type is missing: say which tasks"},
		"a command that is not there":   {[]string{"work", "--type", "mail", "--", "no-such-command"}, nil, term.ExitUsage, `"no-such-command": executable file not found`},
		"one argument too many":         {[]string{"submit", "mail", "to", "ada"}, nil, term.ExitUsage, `"ada" is one argument too many`},
		"no worker":                     {[]string{"claim"}, nil, term.ExitUsage, "--worker is missing: say who claims"},
		"no token":                      {[]string{"complete", "1"}, nil, term.ExitUsage, "so does 'claimq get 1'"},
		"a token of 0":                  {[]string{"complete", "1", "--worker", "w", "--token", "0"}, nil, term.ExitUsage, `--token is "0": it must be a positive number`},
		"a mode that is none":           {[]string{"bench", "--mode", "fast"}, nil, term.ExitUsage, `--mode is "fast": it must be submit`},
		"no reason":                     {[]string{"fail", "1", "--worker", "w", "--token", "7"}, nil, term.ExitUsage, "--error is missing: say what went wrong"},
		"a type with a space":           {[]string{"submit", "send mail"}, nil, term.ExitUsage, "Invalid TYPE: must be a string of 1 to 128 of A-Z a-z 0-9"},
		"params as the type":            {[]string{"submit", `{"to":"ada"}`}, nil, term.ExitUsage, `TYPE is {"to":"ada"}, which is PARAMS`},
		"a type as an argument":         {[]string{"claim", "email"}, nil, term.ExitUsage, "Did you mean '--type email'?"},
		"a pause as elsewhere":          {[]string{"pause", "mail"}, nil, term.ExitUsage, "Did you mean 'claimq type set mail --pause'?"},
		"a resume as elsewhere":         {[]string{"resume"}, nil, term.ExitUsage, "Did you mean 'claimq type set TYPE --resume'?"},
		"queues as elsewhere":           {[]string{"queue"}, nil, term.ExitUsage, "Did you mean 'claimq types'?"},
		"tasks as elsewhere":            {[]string{"tasks"}, nil, term.ExitUsage, "Did you mean 'claimq list'?"},
		"jobs as elsewhere":             {[]string{"jobs", "--status", "failed"}, nil, term.ExitUsage, "Did you mean 'claimq list'?"},
		"a worker with a space":         {[]string{"claim", "--worker", "a b"}, nil, term.ExitUsage, "Give a --worker of 1 to 128"},
		"two times for an update":       {[]string{"update", "1", "--delay", "1h", "--run-at", "now"}, nil, term.ExitUsage, "give one of them"},
		"a negative wait":               {[]string{"get", "1", "--wait", "-1s"}, nil, term.ExitUsage, "--wait is -1s"},
		"params that are no JSON":       {[]string{"submit", "mail", "{to: ada}"}, nil, term.ExitUsage, "A text is JSON in quotes"},
		"params of no file":             {[]string{"submit", "mail", "@" + notThere}, nil, term.ExitUsage, "PARAMS: open"},
		"tasks in place of one":         {[]string{"submit", "mail", "@" + write("tasks", "{}\n{}\n")}, nil, term.ExitUsage, "one a line: --file FILE"},
		"a priority in words":           {[]string{"submit", "mail", "--priority", "high"}, nil, term.ExitUsage, "it must be a whole number"},
		"a priority that is too high":   {[]string{"submit", "mail", "--priority", "99999999999"}, nil, term.ExitUsage, "it must be a whole number from -2147483648 to 2147483647"},
		"a key for too long":            {[]string{"submit", "mail", "--key", "k", "--unique", "window", "--unique-for", "2d"}, nil, term.ExitUsage, "Invalid --unique-for: must be from 1ms to 1d"},
		"a lease that is too short":     {[]string{"submit", "mail", "--lease", "1ms"}, nil, term.ExitUsage, "Invalid --lease: must be from 100ms to 1d"},
		"a delay that is too long":      {[]string{"type", "set", "mail", "--delay", "9999d"}, nil, term.ExitUsage, "Invalid --delay: must be at most 365d"},
		"a worker's lease":              {[]string{"work", "--type", "mail", "--lease", "1ms", "--", "true"}, nil, term.ExitUsage, "--lease is 1ms: it must be from 100ms to 1d"},
		"a worker's metrics nowhere":    {[]string{"work", "--type", "mail", "--metrics-addr", "x", "--", "true"}, nil, term.ExitRefused, "listen on --metrics-addr x"},
		"a parent that is too large":    {[]string{"list", "--parent", "9999999999999999999"}, nil, term.ExitUsage, "Invalid --parent: must be an integer"},
		"a label with a colon":          {[]string{"list", "--label", "a:b=c"}, nil, term.ExitUsage, "it must be name=value, without : in the name"},
		"a finalization for too long":   {[]string{"finalization", "claim", "1", "--processor", "p", "--for", "2h"}, nil, term.ExitUsage, "Invalid --for: must be from 1s to 1h"},
		"a token for too long":          {[]string{"cluster", "token", "create", "--expires", "99d"}, nil, term.ExitUsage, "Invalid --expires: must be from 1ms to 30d"},
		"an id of no join token":        {[]string{"cluster", "token", "revoke", "none"}, nil, term.ExitUsage, "Invalid ID: must be the id of a join token, 12 hexadecimal digits"},
		"a node of a bad name":          {[]string{"cluster", "remove", "n 1"}, nil, term.ExitUsage, "Invalid NODE_ID: must be the name of a node, 1 to 64 of"},
		"a peer without a port":         {[]string{"cluster", "join", "n4", "box"}, nil, term.ExitUsage, "Invalid PEER_ADDR: must be HOST:PORT"},
		"a share key that is too long":  {[]string{"share", "set", "mail", strings.Repeat("x", 129), "--weight", "1"}, nil, term.ExitUsage, "Invalid KEY: must be 1 to 128 bytes"},
		"a schedule of a bad type":      {[]string{"schedule", "set", "s", "a b", "--every", "1h"}, nil, term.ExitUsage, "Invalid TYPE: must be a string of 1 to 128"},
		"a time zone of no cron line":   {[]string{"schedule", "set", "s", "mail", "--every", "1h", "--timezone", "UTC"}, nil, term.ExitUsage, "--timezone is given without --cron"},
		"an empty key":                  {[]string{"get", "--key", ""}, nil, term.ExitUsage, "--key is empty: give it a value"},
		"no endpoint":                   {[]string{"list", "--endpoint", ""}, nil, term.ExitUsage, "--endpoint is empty: give the URL of a node"},
		"no endpoint to reload":         {[]string{"key", "reload", "--endpoint", ""}, nil, term.ExitUsage, "--endpoint is empty: give the URL of a node"},
		"a setting that is too large":   {[]string{"server", "--limits-items", "99999999999999999999"}, nil, term.ExitUsage, `--limits-items is "99999999999999999999": it must be from 1 to 1000`},
		"a setting in words":            {[]string{"server", "--drain-time", "soon"}, nil, term.ExitUsage, `--drain-time is "soon": it must be a duration such as "90s"`},
		"a delay without a unit":        {[]string{"submit", "mail", "--delay", "10"}, nil, term.ExitUsage, "as 500ms, 30s, 10m or 1d12h"},
		"a time in words":               {[]string{"submit", "mail", "--run-at", "tomorrow"}, nil, term.ExitUsage, "as 2026-01-02T15:04:05Z"},
		"both of two":                   {[]string{"submit", "mail", "--delay", "10s", "--run-at", "2026-01-02T15:04:05Z"}, nil, term.ExitUsage, "give one of them"},
		"an id that is none":            {[]string{"get", "mail-7"}, nil, term.ExitUsage, "it must be a positive number"},
		"a task that is not there":      {[]string{"get", "999999"}, nil, term.ExitNone, "Check the id or the key"},
		"a key that is not there":       {[]string{"get", "--key", "mail-7"}, nil, term.ExitNone, "Check the id or the key"},
		"a claim that is none":          {[]string{"complete", "1", "--worker", "w", "--token", "7"}, nil, term.ExitRefused, "Stop working on this task"},
		"a task that waits":             {[]string{"delete", "1"}, nil, term.ExitRefused, "Wait until the task is completed, failed or cancelled"},
		"a status that is none":         {[]string{"list", "--status", "done"}, nil, term.ExitUsage, "Invalid --status: must be pending, scheduled, blocked"},
		"many tasks without a filter":   {[]string{"bulk", "retry"}, nil, term.ExitUsage, "or --all"},
		"a bad field of a cron line":    {[]string{"schedule", "set", "s", "mail", "--cron", "0 25 * * *"}, nil, term.ExitUsage, `the hour has "25", which is not a number from 0 to 23`},
		"a cron line of six fields":     {[]string{"schedule", "set", "s", "mail", "--cron", "0 0 2 * * *"}, nil, term.ExitUsage, "it must have five fields"},
		"a time zone that is none":      {[]string{"schedule", "set", "s", "mail", "--cron", "@daily", "--timezone", "Prague"}, nil, term.ExitUsage, "as Europe/Paris"},
		"a schedule without a time":     {[]string{"schedule", "set", "s", "mail"}, nil, term.ExitUsage, "--cron or --every"},
		"a schedule that is not there":  {[]string{"schedule", "get", "s"}, nil, term.ExitNone, "Check the name"},
		"a setting that is none":        {[]string{"type", "set", "mail", "--rate", "5"}, nil, term.ExitUsage, "Did you mean '--rate-limit' or '--rate-limit-per-key'?"},
		"an op that is none":            {[]string{"batch", write("ops", `{"op":"fly"}`)}, nil, term.ExitUsage, `"submit", "claim", "complete"`},
		"a field of an op that is none": {[]string{"batch", write("typed", `{"op":"submit","type":"mail","params":1}`)}, nil, term.ExitUsage, "Did you mean task_type?"},
		"ops that are no JSON":          {[]string{"batch", write("broken", `{op`)}, nil, term.ExitUsage, "op 1: it is not JSON"},
		"no file of the API key":        {[]string{"stats", "--api-key-file", notThere}, nil, term.ExitUsage, "API key file: open"},
		"no file of the authorities":    {[]string{"stats", "--ca-file", notThere}, nil, term.ExitUsage, "--ca-file: open"},
		"an output that is none":        {[]string{"stats", "--output", "yaml"}, nil, term.ExitUsage, "it must be one of table, json"},
		"no folder":                     {[]string{"doctor"}, nil, term.ExitUsage, "DIR is missing\nUsage: claimq doctor DIR"},
		"a folder that is not there":    {[]string{"doctor", notThere}, nil, term.ExitUsage, "no such file or directory"},
		"a folder in use":               {[]string{"doctor", c.Nodes[0].DataDir}, nil, term.ExitRefused, "a running claimq process"},
		"a server without a name":       {[]string{"server"}, nil, term.ExitUsage, "(--node-id n1)"},
		"a slip in a configuration":     {[]string{"server", "--config", write("c.yaml", "nodeid: n1\n")}, nil, term.ExitUsage, `did you mean "node_id"?`},
		"a member that is none":         {[]string{"cluster", "remove", "n9"}, nil, term.ExitRefused, "The members are n1"},
		"a backup that is none":         {[]string{"snapshot", "inspect", write("backup", "no backup")}, nil, term.ExitRefused, "is not a backup"},
		"a shell that is none":          {[]string{"completion", "tcsh"}, nil, term.ExitUsage, "bash, zsh, fish or powershell"},
		"a role that is none":           {[]string{"key", "generate", "--name", "shop", "--role", "boss"}, nil, term.ExitUsage, `--role is "boss": it must be reader`},
		"a key for nobody":              {[]string{"key", "generate", "--role", "worker"}, nil, term.ExitUsage, "--name is missing: say what"},
		"a time that is none":           {[]string{"testserver", "--at", "noon"}, nil, term.ExitUsage, "it must be a time as"},
		"too many nodes":                {[]string{"dev", "--nodes", "9"}, nil, term.ExitUsage, "it must be 1 to 7"},
	} {
		t.Run(name, func(t *testing.T) {
			env := m.env
			if env == nil {
				env = []string{"CLAIMQ_ENDPOINTS=" + node}
			}
			var stdout, stderr bytes.Buffer
			a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Environ: env}
			ctx, cancel := context.WithCancel(t.Context()) // a context with a deadline would count in place of --timeout
			defer cancel()
			defer time.AfterFunc(mistakeAnswered, cancel).Stop()
			if code := run(ctx, a, m.args); code != m.code || ctx.Err() != nil {
				t.Errorf("exit code %d, want %d (%v)", code, m.code, ctx.Err())
			}
			if said := stdout.String() + stderr.String(); !strings.Contains(said, m.says) {
				t.Errorf("it says %q, want %q in it", said, m.says)
			}
		})
	}
}
