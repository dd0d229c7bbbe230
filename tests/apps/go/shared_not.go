//go:build !go1.26
// +build !go1.26

package main

import "net/http"

func (s *service) sharedModes() map[string]func() http.HandlerFunc { return nil }
