package sqs

import (
	"bytes"
	"net/url"
	"strings"
)

// Head is the part of a request that is known before its parameters are read.
type Head struct {
	Op     Op
	Query  bool   // of the Query protocol, whose answers are XML
	InPath string // the queue in the path, "" if it has none
	Bad    *Error // the operation is unknown
}

// targetPrefix is the beginning of X-Amz-Target in AWS JSON. There are clients that send another target with a form.
const targetPrefix = "AmazonSQS."

// HeadOf reports whether a request is one of SQS, and which operation it asks for. target is its X-Amz-Target. A GET is
// one only if it has an Action. Paths other than / and /ACCOUNT/QUEUE belong to other APIs.
func HeadOf(method, path, query, target string, body []byte) (h Head, ok bool) {
	get := method == "GET"
	if path != "/" {
		h.InPath = queueInPath(path)
	}
	if !get && method != "POST" || path != "/" && h.InPath == "" {
		return h, false
	}
	var name string
	if after, isJSON := strings.CutPrefix(target, targetPrefix); isJSON && !get {
		name = after
	} else {
		h.Query = true
		var found bool
		if name, found = action([]byte(query)); !found && !get {
			name, found = action(body)
		}
		if get && !found {
			return h, false
		}
	}
	if h.Op, ok = opOf(name); !ok {
		h.Bad = unknownAction(name)
		if name == "" {
			h.Bad = &Error{Shape: "MissingAction", Status: 400, Text: "The request must contain the parameter Action, or the header X-Amz-Target."}
		}
	}
	return h, true
}

// action returns the parameter Action of a form.
func action(form []byte) (name string, ok bool) {
	for part := range bytes.SplitSeq(form, []byte{'&'}) {
		if v, is := bytes.CutPrefix(part, []byte("Action=")); is {
			name, err := url.QueryUnescape(string(v))
			return name, err == nil
		}
	}
	return "", false
}

// queueInPath returns the queue of a path /ACCOUNT/QUEUE, "" if it has another form.
func queueInPath(path string) string {
	account, name, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok || account == "" || strings.Trim(account, "0123456789") != "" || !validQueueName(name) {
		return ""
	}
	return name
}

// queueOfURL returns the name at the end of a queue's URL. It ignores the host, which may be another node or a proxy,
// and the account.
func queueOfURL(u string) string {
	return u[strings.LastIndexByte(u, '/')+1:]
}

// fifoSuffix is the end of the names of FIFO queues.
const fifoSuffix = ".fifo"

func isFIFO(queue string) bool { return strings.HasSuffix(queue, fifoSuffix) }

// validQueueName reports whether a queue can have the name: 1 to 80 letters, digits, hyphens and underscores, of which
// the last five may be .fifo.
func validQueueName(name string) bool {
	stem := strings.TrimSuffix(name, fifoSuffix)
	if stem == "" || len(name) > 80 {
		return false
	}
	for i := range len(stem) {
		if c := stem[i]; !letterOrDigit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func letterOrDigit(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
