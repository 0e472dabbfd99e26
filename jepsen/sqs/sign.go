package sqs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Credential signs the requests of the laboratory's own clients. It has every role.
var Credential = aws.Credentials{AccessKeyID: "CLIENT", SecretAccessKey: "a-secret-of-twenty-six-characters"}

// WriteCredential writes it to a file of a node's flag --sqs-credentials-file, with others in the form that the file has.
func WriteCredential(path string, more ...string) error {
	text := fmt.Sprintf("credentials:\n  - {name: sqs, access_key_id: %s, secret: %s, roles: [producer, worker, operator]}\n", Credential.AccessKeyID, Credential.SecretAccessKey)
	return os.WriteFile(path, []byte(text+strings.Join(more, "")), 0o600)
}

// Headers are the lines by which a POST of body to / at that host is signed now. They are empty if the host is not one.
func Headers(host string, body []byte) string {
	req, err := http.NewRequest(http.MethodPost, "http://"+host+"/", bytes.NewReader(body))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(context.Background(), Credential, req, hex.EncodeToString(sum[:]), "sqs", "eu", time.Now()); err != nil {
		return ""
	}
	return fmt.Sprintf("Authorization: %s\r\nX-Amz-Date: %s\r\n", req.Header.Get("Authorization"), req.Header.Get("X-Amz-Date"))
}
