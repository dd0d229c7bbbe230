// A library that has a Go runtime of its own (-buildmode=c-shared), and calls on connections of which each has
// goroutines of its own.
package main

import "C"

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

//export Poll
func Poll(back *C.char) {
	base := C.GoString(back)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		for n := 0; ; n++ {
			if response, err := client.Get(fmt.Sprintf("%s/back/poll-%d", base, n)); err == nil {
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
}

func main() {}
