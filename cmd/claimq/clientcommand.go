package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/keyfile"
)

// callTimeout is how long a call is tried unless --timeout says otherwise.
const callTimeout = 30 * time.Second

// clientFlags are the flags that every command has that calls a server.
type clientFlags struct {
	endpoints []string
	apiKey    string
	keyFile   string
	tls       tlsFlags
	timeout   time.Duration
	output    string
	outputs   []string // what output may be
}

// addClientFlags gives cmd the common flags, and lets variables set its flags:
// CLAIMQ_WORKER says the same as --worker. A flag beats its variable.
func addClientFlags(a *term.App, cmd *cobra.Command, f *clientFlags, moreOutputs ...string) {
	f.outputs = append([]string{"table", "json"}, moreOutputs...)
	flags := cmd.Flags()
	f.addNodeFlags(flags)
	flags.DurationVar(&f.timeout, "timeout", callTimeout, "how long to go on trying")
	flags.StringVar(&f.output, "output", "table", strings.Join(f.outputs, ", ")+": json is the server's answer as it is")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.setFromVariables(a, cmd.Flags()); err != nil {
			return err
		}
		return f.check()
	}
}

// longer gives a command with client flags more time than callTimeout.
func longer(cmd *cobra.Command, timeout time.Duration) {
	flag := cmd.Flags().Lookup("timeout")
	flag.DefValue = timeout.String()
	_ = flag.Value.Set(flag.DefValue) // a duration's own text
}

// addNodeFlags adds those that say where the nodes are and who calls.
func (f *clientFlags) addNodeFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.endpoints, "endpoint", []string{"http://127.0.0.1:7400"}, "URL of a node; repeatable (CLAIMQ_ENDPOINTS)")
	flags.StringVar(&f.apiKey, "api-key", "", "API key (CLAIMQ_API_KEY, which ps does not show)")
	flags.StringVar(&f.keyFile, "api-key-file", "", "file with the API key or a token, one line, read again while the command runs (CLAIMQ_API_KEY_FILE)")
	f.tls.add(flags)
}

// setFromVariables sets the flags that were not given, and warns of secrets that others may
// read. A flag with the key beats the other one's variable; of the variables the key's does.
func (f *clientFlags) setFromVariables(a *term.App, flags *pflag.FlagSet) error {
	key, file := flags.Changed("api-key"), flags.Changed("api-key-file")
	if err := term.SetFromVariables(a, flags); err != nil {
		return err
	}
	if key && file {
		return term.UsageErrorf("--api-key and --api-key-file are both given: give one of them")
	}
	f.oneKey(file)
	a.WarnOfSecret(f.tls.keyFile)
	a.WarnOfSecret(f.keyFile)
	return nil
}

// oneKey leaves one of key and file.
func (f *clientFlags) oneKey(file bool) {
	switch {
	case file:
		f.apiKey = ""
	case f.apiKey != "":
		f.keyFile = ""
	}
}

func (f *clientFlags) check() error {
	for _, o := range f.outputs {
		if f.output == o {
			if f.timeout <= 0 {
				return term.UsageErrorf("--timeout is %v: it must be positive", f.timeout)
			}
			return nil
		}
	}
	return term.UsageErrorf("--output is %q: it must be one of %s", f.output, strings.Join(f.outputs, ", "))
}

// keySource returns a function that returns the key to send, "": none.
func (f *clientFlags) keySource() (func() string, error) {
	if f.keyFile == "" {
		return func() string { return f.apiKey }, nil
	}
	file, err := keyfile.Open(f.keyFile)
	if err != nil {
		return nil, term.UsageErrorf("--api-key-file: %w", err)
	}
	return file.Key, nil
}

// session is one command's talk with a server.
type session struct {
	a *term.App
	f *clientFlags
	c *client.Client
}

// talk runs fn with a client of the endpoints.
func talk(a *term.App, f *clientFlags, fn func(s session) error) error {
	var endpoints []string
	for _, e := range f.endpoints {
		if e = strings.TrimSpace(e); e != "" {
			endpoints = append(endpoints, e)
		}
	}
	if len(endpoints) == 0 {
		return term.UsageErrorf("--endpoint is empty")
	}
	tlsConfig, err := f.tls.config()
	if err != nil {
		return term.UsageErrorf("%w", err)
	}
	c, err := client.New(client.Config{Endpoints: endpoints, APIKey: f.apiKey, APIKeyFile: f.keyFile, TLS: tlsConfig, Timeout: f.timeout})
	if err != nil {
		return term.UsageErrorf("%w", err)
	}
	defer c.Close()
	return term.AskedAt(endpoints, fn(session{a: a, f: f, c: c}))
}

// talkOfTask runs fn with a client of the endpoints and the task's id that arg is.
func talkOfTask(a *term.App, f *clientFlags, arg string, fn func(s session, id uint64) error) error {
	id, err := parseID(arg)
	if err != nil {
		return err
	}
	return talk(a, f, func(s session) error { return fn(s, id) })
}

// call makes a call and decodes the answer into answer. With --output json it
// prints the server's JSON, that of a refusal too, and shown is true: the
// command has nothing more to print. unknown says what to do when the outcome
// is unknown.
func (s session) call(ctx context.Context, r client.Request, unknown string, answer any) (shown bool, err error) {
	body, err := s.do(ctx, r, unknown, answer)
	shown, showErr := s.showJSON(body, err)
	if err == nil {
		err = showErr
	}
	return shown, err
}

// do makes a call and decodes the answer into answer; it returns the server's
// JSON as it is.
func (s session) do(ctx context.Context, r client.Request, unknown string, answer any) ([]byte, error) {
	body, err := s.c.Do(ctx, r)
	if err != nil {
		return nil, &term.CallError{Err: err, Unknown: unknown}
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return body, fmt.Errorf("decode the server's answer: %w", err)
	}
	return body, nil
}

// showJSON prints, with --output json, what the server answered: body, or the
// refusal that err is. It reports whether body was printed.
func (s session) showJSON(body []byte, err error) (shown bool, showErr error) {
	if s.f.output != "json" {
		return false, nil
	}
	if body != nil {
		_, showErr := fmt.Fprintf(s.a.Stdout, "%s\n", body)
		return showErr == nil, showErr
	}
	var refusal *client.Error
	if errors.As(err, &refusal) && refusal.Details != nil {
		_, showErr = fmt.Fprintf(s.a.Stdout, "%s\n", refusal.Details)
	}
	return false, showErr
}

// parseID reads a task's id.
func parseID(arg string) (uint64, error) {
	id, err := strconv.ParseUint(arg, 10, 53)
	if err != nil || id == 0 {
		return 0, term.UsageErrorf("%q is not a task id: it must be a positive number", arg)
	}
	return id, nil
}

func taskPath(id uint64, verb string) string {
	path := "/api/tasks/" + strconv.FormatUint(id, 10)
	if verb != "" {
		path += "/" + verb
	}
	return path
}
