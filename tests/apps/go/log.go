package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// logged answers with the status that the query names, a body of as many bytes as it names, after as many milliseconds as
// it names (status, bytes, wait), and then logs the request with what a server knows of it.
func (s *service) logged(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
			return n
		}
		return otherwise
	}
	received, _ := io.Copy(io.Discard, r.Body)
	time.Sleep(time.Duration(number("wait", 0)) * time.Millisecond)
	status, size := number("status", 200), number("bytes", 0)
	w.Header().Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(status)
	sent := 0
	if r.Method != http.MethodHead {
		sent, _ = io.WriteString(w, strings.Repeat("x", size))
	}
	latency := time.Since(start)
	s.log.mutex.Lock()
	defer s.log.mutex.Unlock()
	fmt.Fprintf(s.log.out, `{"id":%q,"role":"server","path":%q,"status":%d,"start":%d,"end":%d,"remote":%q,"method":%q,`+
		`"uri":%q,"proto":%q,"received":%d,"sent":%d}`+"\n", requestID(r.URL.Path), r.URL.Path, status, start.UnixNano(),
		start.Add(latency).UnixNano(), r.RemoteAddr, r.Method, r.RequestURI, r.Proto, received, sent)
}
