package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// mode returns the handler of a front that calls in one of these ways, or in several (NAME,NAME,...), of which the first
// word of each request's path then names one:
//
//	same   in the goroutine of the handler
//	child  in a goroutine that it starts and waits for
//	grandchild  in one that such a goroutine starts
//	context  in a goroutine, with the context of the request
//	late   in a goroutine, when the handler has returned and the connection has its next request
//	late-open  the same, while that request is open
//	pool   in one of four goroutines that the first request started, and that take the calls of all
//	pool-context  the same, and the calls carry the contexts of their requests
//	pool-open  as pool, and that first request makes no call and stays open for five seconds
//	proxy  by httputil.ReverseProxy
//	raw    on a connection of its own, without net/http
//
// More are in calls.go, copied.go, drain.go, pulled.go, shared.go and, of programs that are hard on whoever probes them, in hard.go.
func (s *service) mode(name string) http.HandlerFunc {
	if strings.Contains(name, ",") {
		return s.byPath(strings.Split(name, ","))
	}
	for _, modes := range []map[string]func() http.HandlerFunc{
		s.modes(), s.callModes(), s.copiedModes(), s.hardModes(), s.drainModes(), s.pulledModes(), s.sharedModes()} {
		if mode := modes[name]; mode != nil {
			return mode()
		}
	}
	fmt.Fprintln(os.Stderr, "no such mode:", name)
	os.Exit(1)
	return nil
}

func (s *service) modes() map[string]func() http.HandlerFunc {
	return map[string]func() http.HandlerFunc{
		"same":         func() http.HandlerFunc { return s.forward },
		"child":        func() http.HandlerFunc { return s.byChild(1, false) },
		"grandchild":   func() http.HandlerFunc { return s.byChild(2, false) },
		"context":      func() http.HandlerFunc { return s.byChild(1, true) },
		"late":         func() http.HandlerFunc { return s.late(0, 20*time.Millisecond) },
		"late-open":    func() http.HandlerFunc { return s.late(150*time.Millisecond, 100*time.Millisecond) },
		"pool":         func() http.HandlerFunc { return newPool(s).forward },
		"pool-context": func() http.HandlerFunc { return newPool(s).forwardWithContext },
		"pool-open":    func() http.HandlerFunc { return newPool(s).forwardWhileOpen },
		"proxy":        func() http.HandlerFunc { return s.proxy().ServeHTTP },
		"raw":          func() http.HandlerFunc { return s.forwardRaw },
	}
}

func (s *service) byPath(names []string) http.HandlerFunc {
	handlers := make(map[string]http.HandlerFunc)
	for _, name := range names {
		handlers[name] = s.mode(name)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		handler := handlers[strings.SplitN(r.URL.Path, "/", 3)[1]]
		if handler == nil {
			handler = http.NotFound
		}
		handler(w, r)
	}
}

type result struct {
	status int
	err    error
}

// inGoroutine runs f in a goroutine, in one that such a one starts, and so on, and waits for it.
func inGoroutine(depth int, f func() result) result {
	if depth == 0 {
		return f()
	}
	done := make(chan result)
	go func() { done <- inGoroutine(depth-1, f) }()
	return <-done
}

func (s *service) byChild(depth int, hasContext bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx := context.Background()
		if hasContext {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithValue(r.Context(), s, "value"), time.Minute)
			defer cancel()
		}
		got := inGoroutine(depth, func() result {
			status, err := s.callWith(ctx, "/back/"+requestID(r.URL.Path))
			return result{status, err}
		})
		s.reply(w, r, start, got.status, got.err)
	}
}

// late calls that long after the handler has returned, which takes its time.
func (s *service) late(open, after time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		path := "/back/" + requestID(r.URL.Path)
		time.Sleep(open)
		go func() {
			time.Sleep(after)
			if _, err := s.call(path); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
		s.reply(w, r, start, 200, nil)
	}
}

type job struct {
	ctx  context.Context
	path string
	done chan result
}

type pool struct {
	*service
	once sync.Once
	jobs chan job
}

func newPool(s *service) *pool {
	return &pool{service: s, jobs: make(chan job)}
}

func (p *pool) work() {
	for j := range p.jobs {
		status, err := p.callWith(j.ctx, j.path)
		j.done <- result{status, err}
	}
}

// start returns whether it was the first to be called.
func (p *pool) start() bool {
	isFirst := false
	p.once.Do(func() {
		isFirst = true
		for i := 0; i < 4; i++ {
			go p.work()
		}
	})
	return isFirst
}

func (p *pool) do(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	p.start()
	j := job{ctx, "/back/" + requestID(r.URL.Path), make(chan result)}
	p.jobs <- j
	got := <-j.done
	p.reply(w, r, start, got.status, got.err)
}

func (p *pool) forward(w http.ResponseWriter, r *http.Request) {
	p.do(context.Background(), w, r)
}

func (p *pool) forwardWithContext(w http.ResponseWriter, r *http.Request) {
	p.do(r.Context(), w, r)
}

func (p *pool) forwardWhileOpen(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	if !p.start() {
		p.forward(w, r)
		return
	}
	time.Sleep(5 * time.Second)
	p.reply(w, r, start, 200, nil)
}

// loggedTransport records each round trip, to the last byte of its response.
type loggedTransport struct {
	*service
}

func (t loggedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	start := time.Now()
	response, err := t.client.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	t.log.write("client", request.URL.Path, response.StatusCode, start, time.Now())
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

func (s *service) proxy() http.Handler {
	back, err := url.Parse(s.back)
	if err != nil {
		panic(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: loggedTransport{s},
		Director: func(request *http.Request) {
			request.URL.Scheme, request.URL.Host = back.Scheme, back.Host
			request.URL.Path = "/back/" + requestID(request.URL.Path)
			request.Header.Del("traceparent")
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, path := time.Now(), r.URL.Path
		recorder := &statusRecorder{ResponseWriter: w, status: 200}
		recorder.before = func() { s.log.write("server", path, recorder.status, start, time.Now()) }
		proxy.ServeHTTP(recorder, r)
	})
}

// statusRecorder tells of a response before it leaves.
type statusRecorder struct {
	http.ResponseWriter
	status int
	before func()
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.before()
	r.ResponseWriter.WriteHeader(status)
}

func (s *service) callRaw(path string) (int, error) {
	start := time.Now()
	host := strings.TrimPrefix(s.back, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	s.log.write("client", path, response.StatusCode, start, time.Now())
	return response.StatusCode, nil
}

func (s *service) forwardRaw(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	got, err := s.callRaw("/back/" + requestID(r.URL.Path))
	s.reply(w, r, start, got, err)
}
