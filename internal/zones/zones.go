// Package zones provides the time zones: one release of the IANA database for all nodes,
// from the binary (made by tools/zones) or from a file that replaces it. The machine's own
// zones are not used, because nodes whose data differ would disagree on when a schedule
// runs.
package zones

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed" // the release in the binary
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// fileBytesMax bounds a file of zones: a release takes less than half a MiB, and the
	// whole folder of a machine less than 4.
	fileBytesMax = 16 << 20
	// zoneBytesMax bounds one zone of it; the largest takes less than 4 KiB.
	zoneBytesMax = 64 << 10
	// zonesMax bounds the number of files in it; a release has 600.
	zonesMax = 10_000
)

// ErrUnknown is returned for an unknown name.
var ErrUnknown = errors.New("unknown time zone")

//go:embed zones.zip
var embedded []byte

// builtIn reads the release in the binary on first use.
var builtIn = sync.OnceValue(func() *Data {
	d, err := read(embedded)
	if err != nil {
		panic("zones: the release in the binary: " + err.Error()) // a test reads it
	}
	return d
})

// Data is a release. It is safe for concurrent use; nil is the one in the binary.
type Data struct {
	version string
	files   map[string]*zip.File
	read    sync.Map // *time.Location by its name
	sum     func() (string, error)
}

// or returns d, or the release in the binary for nil.
func (d *Data) or() *Data {
	if d == nil {
		return builtIn()
	}
	return d
}

// Version returns the name of the release, such as 2026f.
func (d *Data) Version() string { return d.or().version }

// Sum tells releases of the same name apart: the beginning of the SHA-256 of all zones.
func (d *Data) Sum() string {
	sum, _ := d.or().sum() // errors were already found when the file was opened
	return sum
}

// Location returns the zone of that name; "" is UTC. Error: ErrUnknown, wrapped.
func (d *Data) Location(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	d = d.or()
	if l, ok := d.read.Load(name); ok {
		return l.(*time.Location), nil
	}
	f := d.files[name]
	if f == nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	l, _, err := open(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrUnknown, name, err)
	}
	d.read.Store(name, l) // bounded by the number of files
	return l, nil
}

// Open reads a file of zones: a ZIP archive of a folder of compiled zones, such as Debian's
// /usr/share/zoneinfo, with the name of its release in tzdata.zi or +VERSION.
func Open(file string) (*Data, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > fileBytesMax:
		return nil, fmt.Errorf("%s is larger than %d bytes", file, fileBytesMax)
	}
	d, err := read(text)
	if err == nil {
		_, err = d.sum() // reads all zones
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// release matches the name of a release.
var release = regexp.MustCompile(`^[0-9]{4}[a-z]{1,2}$`)

// read reads the directory of an archive.
func read(text []byte) (*Data, error) {
	archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, fmt.Errorf("it is no ZIP archive: %w", err)
	}
	if len(archive.File) > zonesMax {
		return nil, fmt.Errorf("it has %d files, at most %d", len(archive.File), zonesMax)
	}
	d := &Data{files: make(map[string]*zip.File, len(archive.File))}
	d.sum = sync.OnceValues(d.hash)
	for _, f := range archive.File {
		switch name := path.Clean(f.Name); {
		case name == "+VERSION", name == "tzdata.zi":
			if d.version, err = versionIn(f); err != nil {
				return nil, err
			}
		case !f.FileInfo().IsDir() && isZone(name):
			d.files[name] = f
		}
	}
	switch {
	case !release.MatchString(d.version):
		return nil, errors.New("it does not say which release it has, as 2026f: put tzdata.zi or +VERSION into it")
	case len(d.files) == 0:
		return nil, errors.New("it has no zones at its top: pack what is in the folder, not the folder")
	}
	return d, nil
}

// isZone reports whether a file in a folder of zones is a usable zone: not a list, not one
// that differs between machines, and not one that counts leap seconds.
func isZone(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "right", "posix", "localtime", "posixrules", "Local", "..", "":
		return false
	}
	base := path.Base(name)
	return !strings.Contains(base, ".") && !strings.HasPrefix(base, "leap") && base[0] != '+'
}

// versionIn reads the name of the release from +VERSION, or from the first line of
// tzdata.zi.
func versionIn(f *zip.File) (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	line, err := io.ReadAll(io.LimitReader(r, 64))
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	first, _, _ := strings.Cut(string(line), "\n")
	return strings.TrimSpace(strings.TrimPrefix(first, "# version ")), nil
}

// open reads one zone.
func open(f *zip.File) (*time.Location, []byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, zoneBytesMax+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(text) > zoneBytesMax:
		return nil, nil, fmt.Errorf("it is larger than %d bytes", zoneBytesMax)
	}
	l, err := time.LoadLocationFromTZData(path.Clean(f.Name), text)
	return l, text, err
}

// hash reads all zones and returns the result of Sum.
func (d *Data) hash() (string, error) {
	h := sha256.New()
	for _, name := range d.names() {
		_, text, err := open(d.files[name])
		if err != nil {
			return "", fmt.Errorf("%s is no zone: %w", name, err)
		}
		fmt.Fprintf(h, "%s %d\n", name, len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// Names returns the names of all zones in order.
func (d *Data) Names() []string { return d.or().names() }

func (d *Data) names() []string {
	names := make([]string, 0, len(d.files))
	for name := range d.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
