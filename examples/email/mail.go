package main

import (
	"context"
	"fmt"
	"net"
	"net/smtp"
	"time"
)

const (
	from    = "shop@shop.example"
	dialMax = 10 * time.Second
	// sendMax bounds the talk with the mail server.
	sendMax = 2 * time.Minute
)

type message struct {
	to   string
	text string // header and body
}

// confirmation returns the mail for an order. Its Message-ID comes from the order's key, so every attempt sends the
// same one, and a recipient of two mails can tell that they are the same.
func confirmation(p params) message {
	return message{to: p.To, text: fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: Your order %s\r\nMessage-ID: <%s@shop.example>\r\n\r\nThank you!\r\n",
		from, p.To, p.Order, p.key())}
}

// send hands the mail to the server. Once they talk it ignores ctx, because after a break it would be unknown whether
// the mail was sent.
func send(ctx context.Context, server string, m message) error {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{Timeout: dialMax}).DialContext(ctx, "tcp", server)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(sendMax)); err != nil {
		return err
	}
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Mail(from); err != nil {
		return err
	}
	if err := c.Rcpt(m.to); err != nil {
		return err
	}
	data, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := data.Write([]byte(m.text)); err != nil {
		return err
	}
	return data.Close() // the server's answer says that it has the mail
}
