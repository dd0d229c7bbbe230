// A Go service in one of three roles, with its own record of what it did for the judge of the end-to-end
// tests (one JSON object a line: id, role, path, status, start, end; times in nanoseconds of the wall clock;
// a server's interval lies inside the exchange, a client's around it).
//
//	chain hello PORT LOG              answers every request
//	chain back  PORT LOG              the same, with a status that follows from the request's id
//	chain front PORT LOG BACK_PORT [MODE]    calls back once for each request
//	chain log   PORT LOG                     answers as told, and logs each request as servers do (log.go)
//
// MODE says how: see modes.go. What back is asked for by a call that is to be repeated is in calls.go.
package main

import (
	"bufio"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

type requestLog struct {
	mutex sync.Mutex
	out   *bufio.Writer
}

func openLog(name string) *requestLog {
	file, err := os.Create(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	log := &requestLog{out: bufio.NewWriter(file)}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		log.mutex.Lock() // never released: no line may follow the last flush
		log.out.Flush()
		os.Exit(0)
	}()
	return log
}

func requestID(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}

func (l *requestLog) write(role, path string, status int, start, end time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fmt.Fprintf(l.out, `{"id":%q,"role":%q,"path":%q,"status":%d,"start":%d,"end":%d}`+"\n",
		requestID(path), role, path, status, start.UnixNano(), end.UnixNano())
}

// received also says which traceparent headers the request had, joined by blanks.
func (l *requestLog) received(role string, r *http.Request, status int, start time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fmt.Fprintf(l.out, `{"id":%q,"role":%q,"path":%q,"status":%d,"start":%d,"end":%d,"headers":%q}`+"\n",
		requestID(r.URL.Path), role, r.URL.Path, status, start.UnixNano(), time.Now().UnixNano(),
		strings.Join(r.Header["Traceparent"], " "))
}

type service struct {
	log    *requestLog
	client *http.Client
	back   string
	seen   sync.Map // of back: what sendAway had to do with
}

func (s *service) hello(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	s.log.write("server", r.URL.Path, 200, start, time.Now())
	io.WriteString(w, "hello\n")
}

// number is one that follows from the request's id.
func number(path string) uint32 {
	hash := fnv.New32a()
	io.WriteString(hash, requestID(path))
	return hash.Sum32()
}

func (s *service) answer(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	if s.sendAway(w, r, start) {
		return
	}
	status := 200
	switch number(r.URL.Path) % 16 {
	case 3:
		status = 404
	case 7:
		status = 201
	case 11:
		status = 500
	}
	s.log.received("server", r, status, start)
	w.WriteHeader(status)
	io.WriteString(w, "back "+r.URL.Path+"\n")
}

func (s *service) call(path string) (int, error) {
	return s.callWith(context.Background(), path)
}

func (s *service) callWith(ctx context.Context, path string) (int, error) {
	start := time.Now()
	request, err := http.NewRequestWithContext(ctx, "GET", s.back+path, nil)
	if err != nil {
		return 0, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	s.log.write("client", path, response.StatusCode, start, time.Now())
	return response.StatusCode, nil
}

func (s *service) reply(w http.ResponseWriter, r *http.Request, start time.Time, got int, err error) {
	status := 200
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || got >= 500 {
		status = 502
	}
	s.log.write("server", r.URL.Path, status, start, time.Now())
	w.WriteHeader(status)
	io.WriteString(w, "front "+r.URL.Path+"\n")
}

func (s *service) forward(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	got, err := s.call("/back/" + requestID(r.URL.Path))
	s.reply(w, r, start, got, err)
}

// address is that of this host, if only a port is given.
func address(port string) string {
	if strings.Contains(port, ":") {
		return port
	}
	return "127.0.0.1:" + port
}

func main() {
	if len(os.Args) == 2 {
		return // this program, started by itself (hard.go)
	}
	role, port := os.Args[1], os.Args[2]
	s := &service{log: openLog(os.Args[3])}
	handler := map[string]http.HandlerFunc{"hello": s.hello, "back": s.answer, "front": s.forward, "log": s.logged}[role]
	if role == "front" {
		s.back = "http://" + address(os.Args[4])
		s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
		if len(os.Args) > 5 {
			handler = s.mode(os.Args[5])
		}
	}
	server := &http.Server{Addr: address(port), Handler: handler}
	fmt.Println("ready")
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}
