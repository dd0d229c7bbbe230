//go:build go1.26
// +build go1.26

package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
)

// sharedModes has one more:
//
//	shared  on one connection that the program has made for itself, and that takes one call after the other
func (s *service) sharedModes() map[string]func() http.HandlerFunc {
	return map[string]func() http.HandlerFunc{
		"shared": func() http.HandlerFunc {
			return s.with(&http.Client{Transport: &sharedConn{host: strings.TrimPrefix(s.back, "http://")}}).forward
		},
	}
}

type sharedConn struct {
	host string
	lock sync.Mutex
	conn *http.ClientConn
}

func (c *sharedConn) get() (*http.ClientConn, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.conn != nil && c.conn.Err() == nil {
		return c.conn, nil
	}
	conn, err := new(http.Transport).NewClientConn(context.Background(), "http", c.host)
	c.conn = conn
	return conn, err
}

func (c *sharedConn) RoundTrip(request *http.Request) (*http.Response, error) {
	conn, err := c.get()
	if err != nil {
		return nil, err
	}
	return conn.RoundTrip(request)
}
