package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

var signer = v4.NewSigner()

// sign signs a request before it is sent, as the SDK does.
func sign(ctx context.Context, req *http.Request, body string) error {
	sum := sha256.Sum256([]byte(body))
	return signer.SignHTTP(ctx, aws.Credentials{AccessKeyID: accessKeyID, SecretAccessKey: secret}, req, hex.EncodeToString(sum[:]), "sqs", "eu", time.Now())
}

// ask posts a body and returns that of the answer. ready completes the request.
func ask(ctx context.Context, c *http.Client, url, contentType, body string, ready func(req *http.Request) error) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	if err := ready(req); err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	return answerOf(resp)
}
