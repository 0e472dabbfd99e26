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
func addClientFlags(a *app, cmd *cobra.Command, f *clientFlags, moreOutputs ...string) {
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

// variables are those that are not named after their flag.
func variableOf(flag string) []string {
	switch flag {
	case "endpoint":
		return []string{"CLAIMQ_ENDPOINTS"}
	case "token": // as claim --output env has it
		return []string{"CLAIMQ_TOKEN", "CLAIMQ_CLAIM_TOKEN"}
	}
	return []string{"CLAIMQ_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

// variablesOf returns the variables that mean something to some command below cmd.
func variablesOf(cmd *cobra.Command) []string {
	names := []string{"CLAIMQ_CONFIG", "CLAIMQ_ENDPOINTS"}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, variableOf(f.Name)...) })
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(cmd)
	return names
}

// explicitOnly marks a flag that no variable sets: what changes settings must be
// said on the command line.
const explicitOnly = "claimq_explicit_only"

// setFromVariables sets the flags that were not given.
func setFromVariables(a *app, flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || f.Annotations[explicitOnly] != nil {
			return
		}
		for _, name := range variableOf(f.Name) {
			value := a.getenv(name)
			if value == "" {
				continue
			}
			if err := flags.Set(f.Name, value); err != nil {
				errs = append(errs, usageErrorf("%s=%q: %w", name, value, err))
			}
			return
		}
	})
	return errors.Join(errs...)
}

// onlyExplicit marks the flags that cmd has beside those of every client command.
func onlyExplicit(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "endpoint", "api-key", "api-key-file", "ca-file", "cert-file", "key-file", "timeout", "output":
		default:
			f.Annotations = map[string][]string{explicitOnly: {}}
		}
	})
}

// setFromVariables sets the flags that were not given, and warns of secrets that others may
// read. A flag with the key beats the other one's variable; of the variables the key's does.
func (f *clientFlags) setFromVariables(a *app, flags *pflag.FlagSet) error {
	key, file := flags.Changed("api-key"), flags.Changed("api-key-file")
	if err := setFromVariables(a, flags); err != nil {
		return err
	}
	if key && file {
		return usageErrorf("--api-key and --api-key-file are both given: give one of them")
	}
	f.oneKey(file)
	a.warnOfSecret(f.tls.keyFile)
	a.warnOfSecret(f.keyFile)
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
				return usageErrorf("--timeout is %v: it must be positive", f.timeout)
			}
			return nil
		}
	}
	return usageErrorf("--output is %q: it must be one of %s", f.output, strings.Join(f.outputs, ", "))
}

// keySource returns a function that returns the key to send, "": none.
func (f *clientFlags) keySource() (func() string, error) {
	if f.keyFile == "" {
		return func() string { return f.apiKey }, nil
	}
	file, err := keyfile.Open(f.keyFile)
	if err != nil {
		return nil, usageErrorf("--api-key-file: %w", err)
	}
	return file.Key, nil
}

// session is one command's talk with a server.
type session struct {
	a *app
	f *clientFlags
	c *client.Client
}

// talk runs fn with a client of the endpoints.
func (a *app) talk(f *clientFlags, fn func(s session) error) error {
	var endpoints []string
	for _, e := range f.endpoints {
		if e = strings.TrimSpace(e); e != "" {
			endpoints = append(endpoints, e)
		}
	}
	if len(endpoints) == 0 {
		return usageErrorf("--endpoint is empty")
	}
	tlsConfig, err := f.tls.config()
	if err != nil {
		return usageErrorf("%w", err)
	}
	c, err := client.New(client.Config{Endpoints: endpoints, APIKey: f.apiKey, APIKeyFile: f.keyFile, TLS: tlsConfig, Timeout: f.timeout})
	if err != nil {
		return usageErrorf("%w", err)
	}
	defer c.Close()
	return askedAt(endpoints, fn(session{a: a, f: f, c: c}))
}

// talkOfTask runs fn with a client of the endpoints and the task's id that arg is.
func (a *app) talkOfTask(f *clientFlags, arg string, fn func(s session, id uint64) error) error {
	id, err := parseID(arg)
	if err != nil {
		return err
	}
	return a.talk(f, func(s session) error { return fn(s, id) })
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
		return nil, &callError{err: err, unknown: unknown}
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
		_, showErr := fmt.Fprintf(s.a.stdout, "%s\n", body)
		return showErr == nil, showErr
	}
	var refusal *client.Error
	if errors.As(err, &refusal) && refusal.Details != nil {
		_, showErr = fmt.Fprintf(s.a.stdout, "%s\n", refusal.Details)
	}
	return false, showErr
}

// parseID reads a task's id.
func parseID(arg string) (uint64, error) {
	id, err := strconv.ParseUint(arg, 10, 53)
	if err != nil || id == 0 {
		return 0, usageErrorf("%q is not a task id: it must be a positive number", arg)
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
