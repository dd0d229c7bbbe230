//go:build embedding
// +build embedding

package main

import (
	_ "embed"
	"log"
)

// Another Go program, with a function table and types of its own.
//
//go:embed embedded
var embedded string

func init() { log.SetPrefix(embedded[1:4] + " ") }
