//go:build !go1.21
// +build !go1.21

package main

import "context"

func detached(ctx context.Context) context.Context { return ctx }
