package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Sources of a setting's value.
const (
	FromDefault  = "default"
	FromFile     = "file"
	FromVariable = "variable"
	FromFlag     = "flag"
)

// Loaded is a configuration and its origin.
type Loaded struct {
	Server
	// Origins has the origin of each setting by name; keys may come from two files.
	Origins map[string]Origin
	// KeyFiles are the files that contain keys.
	KeyFiles []string
	// Warnings are probable mistakes that do not prevent the server from running, a sentence each.
	Warnings []string
}

// Origin is the source of a setting's value.
type Origin struct {
	From string // FromDefault, FromFile, FromVariable or FromFlag
	Name string // the flag, the variable or the file; "" for a default
}

func (o Origin) String() string { return strings.TrimSpace(o.From + " " + o.Name) }

// LoadServer merges the YAML file at path ("" = none), the environment and the flags that were set, reads the keys of
// KeysFile, and validates the result. The error has every mistake, one per line. environ has elements of the form
// KEY=value, as returned by os.Environ; an empty variable counts as not set, and one that names no setting of a
// server is ignored, because clients have their own.
func LoadServer(path string, environ []string, fs *pflag.FlagSet) (Loaded, error) {
	l := loader{
		all:    settings(),
		loaded: Loaded{Server: DefaultServer(), Origins: make(map[string]Origin)},
	}
	for _, d := range l.all {
		l.loaded.Origins[d.name] = Origin{From: FromDefault}
	}
	l.loaded.Origins[keysName] = Origin{From: FromDefault}
	l.loaded.Origins[rolesName] = Origin{From: FromDefault}
	if path != "" {
		if err := l.readFile(path); err != nil {
			return Loaded{}, fmt.Errorf("read config file: %w", err)
		}
	}
	l.readVariables(environ)
	l.readFlags(fs)
	if l.loaded.KeysFile != "" {
		l.readKeysFile(l.loaded.KeysFile)
	}
	if l.loaded.SQS.CredentialsFile != "" {
		l.readCredentials(l.loaded.SQS.CredentialsFile)
	}
	if err := l.loaded.Validate(); err != nil {
		l.mistakes = append(l.mistakes, err)
	}
	if len(l.mistakes) > 0 {
		return Loaded{}, errors.Join(l.mistakes...)
	}
	l.warn()
	return l.loaded, nil
}

// loader collects a configuration and its mistakes.
type loader struct {
	all      []setting
	loaded   Loaded
	mistakes []error
}

func (l *loader) mistake(format string, args ...any) {
	l.mistakes = append(l.mistakes, fmt.Errorf(format, args...))
}

// set sets a setting from one source. Each of texts is set in turn, because a list may have several. where describes
// the source in mistakes.
func (l *loader) set(d *setting, from Origin, where string, texts ...string) {
	v := d.value(&l.loaded.Server)
	for _, t := range texts {
		if err := v.Set(t); err != nil {
			l.mistake("%s: %s is %q: %w", where, d.name, t, err)
			return
		}
	}
	l.loaded.Origins[d.name] = from
}

func (l *loader) readVariables(environ []string) {
	values := make(map[string]string, len(environ))
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		values[name] = value
	}
	for i := range l.all {
		d := &l.all[i]
		if value := values[d.variable()]; value != "" {
			l.set(d, Origin{FromVariable, d.variable()}, "variable "+d.variable(), value)
		}
	}
	if values[variablePrefix+"KEYS"] != "" {
		l.mistake("variable CLAIMQ_KEYS: keys are set in a file alone; name it with CLAIMQ_KEYS_FILE or --keys-file")
	}
	if values[variablePrefix+"OIDC__ROLES"] != "" {
		l.mistake("variable CLAIMQ_OIDC__ROLES: oidc.roles are set in the configuration file alone")
	}
}

func (l *loader) readFlags(fs *pflag.FlagSet) {
	for i := range l.all {
		d := &l.all[i]
		if f := fs.Lookup(d.flag()); f != nil && f.Changed {
			l.set(d, Origin{FromFlag, "--" + f.Name}, "flag --"+f.Name, f.Value.String())
		}
	}
}

// MisspelledVariables returns a warning for each variable in environ that is unknown but looks like a setting. others
// are the variables of other commands.
func MisspelledVariables(environ, others []string) []string {
	names := make(map[string]bool)
	for _, name := range others {
		names[name] = true
	}
	var known []string
	for _, d := range settings() {
		names[d.variable()] = true
		known = append(known, d.variable())
	}
	var warnings []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, variablePrefix) || names[name] {
			continue
		}
		if near := nearest(name, known); near != "" {
			warnings = append(warnings, fmt.Sprintf("the variable %s is no setting and is ignored; did you mean %s?", name, near))
		}
	}
	return warnings
}
