package plants

import (
	"embed"
	"fmt"
	"strings"

	"github.com/claimq/claimq/internal/procs"
)

//go:embed *.txt
var texts embed.FS

// parsed reads the plants of one file of this folder. It panics if the file is not written
// as doc.go says.
func parsed(file string) []Plant {
	text, err := texts.ReadFile(file)
	if err != nil {
		panic(err)
	}
	all, err := parse(string(text))
	if err != nil {
		panic(fmt.Errorf("%s: %w", file, err))
	}
	return all
}

func parse(text string) (all []Plant, err error) {
	for line := range strings.Lines(text) {
		if line == "\n" || line[0] == '#' {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "plant "); ok {
			name, what, _ := strings.Cut(strings.TrimSpace(rest), ": ")
			all = append(all, Plant{Name: name, What: what})
			continue
		}
		if len(all) == 0 || !all[len(all)-1].add(line) {
			return nil, fmt.Errorf("no line of a plant: %q", line)
		}
	}
	return all, nil
}

// add takes a line below the plant's first.
func (p *Plant) add(line string) (ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch word {
	case "faults":
		p.Faults = rest
	case "operations":
		p.Operations = true
	case "load":
		_, err := fmt.Sscanf(rest, "%d clients, %d calls a second", &p.Clients, &p.Rate)
		return err == nil
	case "readers":
		_, err := fmt.Sscanf(rest, "%d", &p.Readers)
		return err == nil
	case "test":
		p.Package, p.Test, _ = strings.Cut(rest, " ")
	case "soak":
		p.Soak = rest
	case "row":
		p.Row = rest
	case "in":
		p.edits = append(p.edits, procs.Edit{File: rest})
	default:
		return len(p.edits) > 0 && change(&p.edits[len(p.edits)-1], line[0], line[1:])
	}
	return true
}

// change adds a line to an edit.
func change(e *procs.Edit, mark byte, line string) (ok bool) {
	if mark == ' ' || mark == '-' {
		e.Old += line
	}
	if mark == ' ' || mark == '+' {
		e.New += line
	}
	return strings.IndexByte(" -+", mark) >= 0
}
