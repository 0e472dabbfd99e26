package session

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// The key comes from a flag or a file. A flag overrides a variable, and a key overrides a file.
func TestClientFlags_Key(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name, value string) map[string]string { return map[string]string{name: value} }
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want string // "": refused
	}{
		"the key":                    {[]string{"--api-key", "k"}, nil, "k"},
		"the file":                   {[]string{"--api-key-file", path}, nil, "of-file"},
		"the file's variable":        {nil, env("CLAIMQ_API_KEY_FILE", path), "of-file"},
		"the key before a variable":  {[]string{"--api-key", "k"}, env("CLAIMQ_API_KEY_FILE", path), "k"},
		"the file before a variable": {[]string{"--api-key-file", path}, env("CLAIMQ_API_KEY", "k"), "of-file"},
		"both variables":             {nil, map[string]string{"CLAIMQ_API_KEY_FILE": path, "CLAIMQ_API_KEY": "k"}, "k"},
		"both":                       {[]string{"--api-key-file", path, "--api-key", "k"}, nil, ""},
		"a file that is not there":   {[]string{"--api-key-file", path + ".no"}, nil, ""},
	} {
		var environ []string
		for name, value := range c.env {
			environ = append(environ, name+"="+value)
		}
		a := &term.App{Stderr: io.Discard, Environ: environ}
		var f Flags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.AddNodeFlags(flags)
		if err := flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		err := f.SetFromVariables(a, flags)
		got := ""
		if err == nil {
			var key func() string
			if key, err = f.KeySource(); err == nil {
				got = key()
			}
		}
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
