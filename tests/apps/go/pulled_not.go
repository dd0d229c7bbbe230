//go:build !go1.23
// +build !go1.23

package main

import "net/http"

func (s *service) pulledModes() map[string]func() http.HandlerFunc { return nil }
