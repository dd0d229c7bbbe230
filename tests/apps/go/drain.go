package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Contexts of types that a program makes itself.
type (
	// embedding hangs on another context, as most do: its first field is that.
	embedding struct {
		context.Context
		name string
	}
	// hiding has it somewhere else.
	hiding struct {
		name  string
		inner context.Context
	}
)

func (h *hiding) Deadline() (time.Time, bool)       { return h.inner.Deadline() }
func (h *hiding) Done() <-chan struct{}             { return h.inner.Done() }
func (h *hiding) Err() error                        { return h.inner.Err() }
func (h *hiding) Value(key interface{}) interface{} { return h.inner.Value(key) }

// drainModes are those in which requests leave their calls in a queue: whoever finds that nobody takes from it starts a
// goroutine that does until it is empty, and stays open for a while when its own has been made. Calls carry:
//
//	drain-embedded  a context that embeds the request's
//	drain-boxed     the same as a value
//	drain-detached  one that is not cancelled with the request's (Go 1.21; before it the request's)
//	drain-hidden    a context that hides the request's
func (s *service) drainModes() map[string]func() http.HandlerFunc {
	wrapped := func(wrap func(context.Context) context.Context) func() http.HandlerFunc {
		return func() http.HandlerFunc { return (&queue{service: s, wrap: wrap}).forward }
	}
	return map[string]func() http.HandlerFunc{
		"drain-embedded": wrapped(func(c context.Context) context.Context { return &embedding{c, "by pointer"} }),
		"drain-boxed":    wrapped(func(c context.Context) context.Context { return embedding{c, "by value"} }),
		"drain-detached": wrapped(detached),
		"drain-hidden":   wrapped(func(c context.Context) context.Context { return &hiding{"hidden", c} }),
	}
}

type queue struct {
	*service
	wrap      func(context.Context) context.Context
	lock      sync.Mutex
	isDrained bool
	jobs      []job
}

// add returns whether nobody takes from the queue.
func (q *queue) add(j job) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.jobs = append(q.jobs, j)
	isFirst := !q.isDrained
	q.isDrained = true
	return isFirst
}

func (q *queue) next() (job, bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if len(q.jobs) == 0 {
		q.isDrained = false
		return job{}, false
	}
	j := q.jobs[0]
	q.jobs = q.jobs[1:]
	return j, true
}

func (q *queue) drain() {
	for j, ok := q.next(); ok; j, ok = q.next() {
		status, err := q.callWith(j.ctx, j.path)
		j.done <- result{status, err}
	}
}

func (q *queue) forward(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	j := job{q.wrap(r.Context()), "/back/" + requestID(r.URL.Path), make(chan result, 1)}
	isFirst := q.add(j)
	if isFirst {
		go q.drain()
	}
	got := <-j.done
	if isFirst {
		time.Sleep(20 * time.Millisecond)
	}
	q.reply(w, r, start, got.status, got.err)
}
