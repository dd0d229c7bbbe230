package main

import (
	"context"
	"fmt"
	"math/rand"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// callModes are further ways to call (see service.mode):
//
//	twice  in two goroutines at the same time, paths /back/a-ID and /back/b-ID
//	group  in three at the same time, with a context derived from the request's, as errgroup does
//	timer  in the goroutine of a timer that the handler has set, when it has returned
//	poller as same, while a goroutine started before the first request calls back every 2 ms, paths /back/poll-N
//	reuse  in a goroutine that a request has started, if none of them is idle
//	retry  /back/a-ID, then /back/drop-ID on the same connection, which back closes: the transport tries again
//	redirect  /back/hop-ID, which leads to /back/ID
//	wrapped  over connections that the program has wrapped in a type of its own
//	race   with few idle connections and slow dialing: a call may get the connection that was dialed for another one
//	via-proxy  through an HTTP proxy, which back plays
func (s *service) callModes() map[string]func() http.HandlerFunc {
	return map[string]func() http.HandlerFunc{
		"twice":     func() http.HandlerFunc { return s.parallel(2, false) },
		"group":     func() http.HandlerFunc { return s.parallel(3, true) },
		"timer":     func() http.HandlerFunc { return s.forwardByTimer },
		"poller":    s.poller,
		"reuse":     func() http.HandlerFunc { return (&workers{service: s}).forward },
		"retry":     func() http.HandlerFunc { return s.forwardTwiceTried },
		"redirect":  func() http.HandlerFunc { return s.forwardRedirected },
		"race":      func() http.HandlerFunc { return s.with(&http.Client{Transport: racing()}).forward },
		"via-proxy": func() http.HandlerFunc { return s.viaProxy().forward },
		"wrapped":   func() http.HandlerFunc { return s.with(&http.Client{Transport: wrapping()}).forward },
	}
}

func (s *service) with(client *http.Client) *service {
	return &service{log: s.log, client: client, back: s.back}
}

func (s *service) parallel(n int, hasContext bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start, worst := time.Now(), result{}
		ctx := context.Background()
		if hasContext {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(r.Context())
			defer cancel()
		}
		results := make(chan result, n)
		for i := 0; i < n; i++ {
			path := fmt.Sprintf("/back/%c-%s", 'a'+i, requestID(r.URL.Path))
			go func() {
				status, err := s.callWith(ctx, path)
				results <- result{status, err}
			}()
		}
		for i := 0; i < n; i++ {
			got := <-results
			if got.err != nil || (worst.err == nil && got.status > worst.status) {
				worst = got
			}
		}
		s.reply(w, r, start, worst.status, worst.err)
	}
}

func (s *service) forwardByTimer(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	path := "/back/" + requestID(r.URL.Path)
	time.AfterFunc(20*time.Millisecond, func() {
		if _, err := s.call(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	s.reply(w, r, start, 200, nil)
}

func (s *service) poller() http.HandlerFunc {
	go func() {
		for n := 0; ; n++ {
			if _, err := s.call(fmt.Sprintf("/back/poll-%d", n)); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	return s.forward
}

// workers are goroutines that outlive what they were started for, as some servers keep them.
type workers struct {
	*service
	mutex sync.Mutex
	idle  []chan job
}

func (p *workers) take() chan job {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if n := len(p.idle); n > 0 {
		jobs := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return jobs
	}
	jobs := make(chan job)
	go p.work(jobs)
	return jobs
}

func (p *workers) work(jobs chan job) {
	for j := range jobs {
		status, err := p.callWith(j.ctx, j.path)
		p.mutex.Lock()
		p.idle = append(p.idle, jobs)
		p.mutex.Unlock()
		j.done <- result{status, err}
	}
}

func (p *workers) forward(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	j := job{context.Background(), "/back/" + requestID(r.URL.Path), make(chan result, 1)}
	p.take() <- j
	got := <-j.done
	p.reply(w, r, start, got.status, got.err)
}

func (s *service) forwardTwiceTried(w http.ResponseWriter, r *http.Request) {
	start, id := time.Now(), requestID(r.URL.Path)
	one := s.with(&http.Client{Transport: &http.Transport{}})
	defer one.client.CloseIdleConnections()
	got, err := one.call("/back/a-" + id) // the transport tries again only on a connection that has been used
	if err == nil {
		got, err = one.call("/back/drop-" + id)
	}
	s.reply(w, r, start, got, err)
}

func (s *service) forwardRedirected(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	client := &http.Client{Transport: loggedTransport{s}}
	response, err := client.Get(s.back + "/back/hop-" + requestID(r.URL.Path))
	if err != nil {
		s.reply(w, r, start, 0, err)
		return
	}
	response.Body.Close()
	s.reply(w, r, start, response.StatusCode, nil)
}

// sendAway is back's part of retry and redirect: true if it has done with the request.
func (s *service) sendAway(w http.ResponseWriter, r *http.Request, start time.Time) bool {
	id := requestID(r.URL.Path)
	switch {
	case strings.HasPrefix(id, "hop-"):
		s.log.write("server", r.URL.Path, http.StatusFound, start, time.Now())
		http.Redirect(w, r, "/back/"+strings.TrimPrefix(id, "hop-"), http.StatusFound)
		return true
	case strings.HasPrefix(id, "drop-"):
		if _, isSecond := s.seen.LoadOrStore(id, true); isSecond {
			return false
		}
		s.log.received("dropper", r, 0, start)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		conn.Close()
		return true
	}
	return false
}

type wrappedConn struct {
	net.Conn
	name string
}

func (c *wrappedConn) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", c.name, err)
	}
	return n, err
}

func wrapping() *http.Transport {
	dialer := &net.Dialer{}
	return &http.Transport{
		MaxIdleConnsPerHost: 256,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &wrappedConn{conn, address}, nil
		},
	}
}

func racing() *http.Transport {
	dialer := &net.Dialer{}
	return &http.Transport{
		MaxIdleConnsPerHost: 2,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(time.Duration(rand.Intn(3000)) * time.Microsecond)
			return dialer.DialContext(ctx, network, address)
		},
	}
}

func (s *service) viaProxy() *service {
	proxy, err := url.Parse(s.back)
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, Proxy: http.ProxyURL(proxy)}}
	return &service{log: s.log, client: client, back: "http://behind.example"}
}
