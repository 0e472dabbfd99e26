package api

import (
	"fmt"
	"strings"

	"github.com/claimq/claimq/api/wire"
)

// brief formats events as PLACE EVENT, separated by commas.
func brief(events []wire.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%d.%d %s", e.Index, e.Sub, e.Event))
	}
	return strings.Join(out, ", ")
}
