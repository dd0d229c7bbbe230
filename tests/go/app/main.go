// The program that the Go image reader is tested on: a front that calls a back by net/http, over TLS if asked to. What
// matters is what gets linked in: client and server, contexts of every kind, request bodies.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

type key struct{}

var client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}

func call(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, key{}, url), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(detached(ctx), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func front(back string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var group sync.WaitGroup
		group.Add(1)
		go func() {
			defer group.Done()
			body, err := call(r.Context(), back+r.URL.Path)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			w.Write(body)
		}()
		group.Wait()
	}
}

func main() {
	if len(os.Args) > 2 {
		log.Fatal(http.ListenAndServeTLS(":8443", os.Args[1], os.Args[2], front("https://localhost:8444")))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "back %s\n", r.RequestURI)
	}))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", front("http://"+listener.Addr().String())))
}
