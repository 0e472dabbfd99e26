package client

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claimq/claimq/api/wire"
)

// errorBytesMax is where the server cuts the text of a failure.
const errorBytesMax = 16 << 10

func settlePath(taskID uint64, verb string) string {
	return "/api/tasks/" + strconv.FormatUint(taskID, 10) + "/" + verb
}

// completion is the body of a complete.
func completion(workerID string, token int64, result []byte) ([]byte, error) {
	s := wire.Settle{WorkerID: workerID, ClaimToken: uint64(token)}
	if travelsAsJSON(result) {
		return withRaw("result", result, s)
	}
	s.ResultPayload = result
	return json.Marshal(s)
}

// failure is the body of a fail. The text is cut at a whole character. What the
// server refuses in it, a zero byte and bytes that are not UTF-8, is replaced:
// a failure must not be lost for the words it is told in.
func failure(workerID string, token int64, cause error) ([]byte, error) {
	text := "no reason given"
	if cause != nil && cause.Error() != "" {
		text = strings.ReplaceAll(strings.ToValidUTF8(cause.Error(), "\uFFFD"), "\x00", "\uFFFD")
	}
	if len(text) > errorBytesMax {
		end := errorBytesMax
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return json.Marshal(wire.Settle{WorkerID: workerID, ClaimToken: uint64(token), Error: text})
}
