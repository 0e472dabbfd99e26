package zones_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/zones"
)

// none means the release in the binary.
var none *zones.Data

// The file in the tree is the one that the script made, and all of it can be read.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("zones.zip")
	if err != nil {
		t.Fatal(err)
	}
	noted, err := os.ReadFile("zones.zip.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(text); string(noted) != hex.EncodeToString(sum[:])+"  zones.zip\n" {
		t.Errorf("zones.zip has the SHA-256 %x, zones.zip.sha256 says %s", sum, noted)
	}
	if v := none.Version(); v < "2026f" {
		t.Errorf("release %s, want 2026f or later", v)
	}
	if sum := none.Sum(); len(sum) != 16 {
		t.Errorf("sum %q", sum)
	}
	names := none.Names()
	if len(names) < 590 {
		t.Errorf("%d zones", len(names))
	}
	for _, name := range names {
		if l, err := none.Location(name); err != nil || name != "UTC" && l.String() != name {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}

// jumps returns those of the clocks in the two years, with their offsets from then on.
func jumps(t *testing.T, name string) string {
	t.Helper()
	l, err := none.Location(name)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
	all := begin.In(l).Format("-0700")
	for at := begin; ; {
		_, next := at.In(l).ZoneBounds()
		if next.IsZero() || !next.Before(end) {
			return all
		}
		_, was := at.In(l).Zone()
		if _, is := next.In(l).Zone(); is != was {
			all += ", " + next.UTC().Format("2006-01-02 15:04") + " " + next.Format("-0700")
		}
		at = next
	}
}

// Zones for which older releases are wrong in these years, according to the news of each
// release.
func TestEmbedded_2026and2027(t *testing.T) {
	t.Parallel()
	const (
		morocco  = "+0100, 2026-02-15 02:00 +0000, 2026-03-22 02:00 +0100, 2026-09-20 01:00 +0000" // 2026c
		columbia = "-0800, 2026-03-08 10:00 -0700"                                                 // 2026b
		alberta  = "-0700, 2026-03-08 09:00 -0600"                                                 // 2026c; the Northwest Territories 2026d
		manitoba = "-0600, 2026-03-08 08:00 -0500"                                                 // 2026e
		cuba     = "-0500, 2026-03-08 05:00 -0400, 2027-11-07 05:00 -0500"                         // 2026f
		moldova  = "+0200, 2026-03-29 01:00 +0300, 2026-10-25 01:00 +0200, 2027-03-28 01:00 +0300, 2027-10-31 01:00 +0200"
	)
	for name, want := range map[string]string{
		"Africa/Casablanca": morocco, "Africa/El_Aaiun": morocco,
		"America/Vancouver": columbia, "Canada/Pacific": columbia,
		"America/Edmonton": alberta, "Canada/Mountain": alberta, "America/Inuvik": alberta, "America/Yellowknife": alberta,
		"America/Winnipeg": manitoba, "Canada/Central": manitoba, "America/Rainy_River": manitoba,
		"America/Havana": cuba, "Cuba": cuba,
		"Europe/Chisinau": moldova, "Europe/Tiraspol": moldova, // 2026b
		// And some that did not change.
		"Europe/Paris":     "+0100, 2026-03-29 01:00 +0200, 2026-10-25 01:00 +0100, 2027-03-28 01:00 +0200, 2027-10-31 01:00 +0100",
		"America/New_York": "-0500, 2026-03-08 07:00 -0400, 2026-11-01 06:00 -0500, 2027-03-14 07:00 -0400, 2027-11-07 06:00 -0500",
		"Asia/Kolkata":     "+0530",
		"UTC":              "+0000",
		"":                 "+0000",
	} {
		if got := jumps(t, name); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// The machine's own zones are not used, and names that mean another zone on each machine are
// unknown.
func TestData_Location_refused(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "Hostland"), zone(t, "Europe/Paris"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ZONEINFO", folder)
	for _, name := range []string{
		"Hostland", "localtime", "posixrules", "Local", "right/Europe/Paris", "posix/Europe/Paris", "europe/paris", "Europe", "Europe/",
		"Europe//Paris", "./Europe/Paris", "../zoneinfo/Europe/Paris", "/usr/share/zoneinfo/Europe/Paris", "tzdata.zi", "zone.tab", "+VERSION", "leapseconds", " ",
	} {
		if l, err := none.Location(name); !errors.Is(err, zones.ErrUnknown) {
			t.Errorf("%q: %v, %v", name, l, err)
		}
	}
}

// zone returns the file of a zone in the binary.
func zone(t *testing.T, name string) []byte {
	t.Helper()
	in, err := zip.OpenReader("zones.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	text, err := fs.ReadFile(in, name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// archive writes a file of zones: each name is as in the binary, or has the text.
func archive(t *testing.T, file string, texts map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range texts {
		into, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if from, ok := strings.CutPrefix(text, "= "); ok {
			text = string(zone(t, from))
		}
		if _, err := into.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestOpen(t *testing.T) {
	t.Parallel()
	const paris = "= Europe/Paris"
	for _, c := range []struct {
		name  string
		texts map[string]string
		want  string // of the error; "" = none
	}{
		{"packed by the script", map[string]string{"+VERSION": "2027a\n", "Here": paris}, ""},
		{"packed by hand", map[string]string{"./tzdata.zi": "# version 2027a\n# and more\n", "./Here": paris, "./zone.tab": "x", "./leapseconds": "x", "./right/Here": paris, "./localtime": paris, "./posixrules": paris}, ""},
		{"no name", map[string]string{"Here": paris}, "does not say which release"},
		{"a wrong name", map[string]string{"+VERSION": "latest", "Here": paris}, "does not say which release"},
		{"the folder, not what is in it", map[string]string{"zoneinfo/+VERSION": "2027a", "zoneinfo/Here": paris}, "does not say which release"},
		{"no zones", map[string]string{"+VERSION": "2027a"}, "no zones"},
		{"not a zone", map[string]string{"+VERSION": "2027a", "Here": "x"}, "Here is no zone"},
		{"a huge zone", map[string]string{"+VERSION": "2027a", "Here": strings.Repeat("x", 1<<20)}, "Here is no zone: it is larger than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := archive(t, filepath.Join(t.TempDir(), "zones.zip"), c.texts)
			d, err := zones.Open(file)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
					t.Errorf("got %v, want %q and the file", err, c.want)
				}
				return
			}
			if err != nil || d.Version() != "2027a" || len(d.Names()) != 1 {
				t.Fatalf("%v", err)
			}
			if _, err := d.Location("Here"); err != nil {
				t.Error(err)
			}
			if _, err := d.Location("Europe/Rome"); !errors.Is(err, zones.ErrUnknown) {
				t.Errorf("a zone that the file lacks: %v", err)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "zones.zip")
	if err := os.WriteFile(file, []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := zones.Open(file); err == nil || !strings.Contains(err.Error(), "no ZIP archive") {
		t.Errorf("got %v", err)
	}
}

// A file is read again when it changes; an invalid one is reported once, and changes nothing.
func TestSource(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "zones.zip")
	if _, err := zones.NewSource(file); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("without a file: %v", err)
	}
	put := func(version, zone string) {
		t.Helper()
		made := archive(t, file+".new", map[string]string{"+VERSION": version, "Here": zone})
		if err := os.Rename(made, file); err != nil {
			t.Fatal(err)
		}
	}
	put("2027a", "= Europe/Paris")
	s, err := zones.NewSource(file)
	if err != nil {
		t.Fatal(err)
	}
	look := func(wantChanged, wantErr bool, want string) {
		t.Helper()
		changed, err := s.Reload()
		if changed != wantChanged || (err != nil) != wantErr || s.Current().Version() != want {
			t.Errorf("changed %t, %v, %s; want %t, %t, %s", changed, err, s.Current().Version(), wantChanged, wantErr, want)
		}
	}
	first := s.Current()
	look(false, false, "2027a")
	put("2027b", "= Asia/Kolkata")
	look(true, false, "2027b")
	if first.Sum() == s.Current().Sum() {
		t.Error("other zones, and the same sum")
	}
	put("2027c", "no zone")
	look(false, true, "2027b")
	look(false, false, "2027b")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	look(false, true, "2027b")
	look(false, false, "2027b")
	put("2027d", "= Asia/Kolkata")
	look(true, false, "2027d")

	for _, s := range []*zones.Source{nil, mustSource(t)} {
		if s.Current().Version() != none.Version() {
			t.Error("without a file it is not the release in the binary")
		}
	}
}

func mustSource(t *testing.T) *zones.Source {
	t.Helper()
	s, err := zones.NewSource("")
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := s.Reload(); changed || err != nil {
		t.Errorf("changed %t, %v", changed, err)
	}
	return s
}
