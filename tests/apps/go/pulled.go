//go:build go1.23
// +build go1.23

package main

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// pulledModes have two more:
//
//	pulled  by an iterator of which values are pulled, which is a goroutine of its own
//	pulled-context  the same, with the context of the request
func (s *service) pulledModes() map[string]func() http.HandlerFunc {
	return map[string]func() http.HandlerFunc{
		"pulled":         func() http.HandlerFunc { return s.pulled(false) },
		"pulled-context": func() http.HandlerFunc { return s.pulled(true) },
	}
}

func (s *service) pulled(hasContext bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx := context.Background()
		if hasContext {
			ctx = r.Context()
		}
		next, stop := iter.Pull(func(yield func(result) bool) {
			status, err := s.callWith(ctx, "/back/"+requestID(r.URL.Path))
			yield(result{status, err})
		})
		got, _ := next()
		stop()
		s.reply(w, r, start, got.status, got.err)
	}
}
