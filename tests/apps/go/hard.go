package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// hardModes are those of programs that are hard on whoever probes them (see service.mode). What each answers follows
// from the request alone.
//
//	deep   the call is made in a goroutine at another depth of its stack for each request
//	panic  as same, and then the handler panics for every fourth request
//	gc     as child, among garbage, with a collection for every second request: it stops goroutines at their stack checks,
//	       and a probe there is met again
//	many   as child, with 10,000 goroutines that wait, and 50 more for each request
//	locked in a goroutine that ends locked to its thread, which so ends as well
//	exec   as same, when this program has been run by itself
//	sum    as same, and the answer has the checksum of the program's file
func (s *service) hardModes() map[string]func() http.HandlerFunc {
	return map[string]func() http.HandlerFunc{
		"deep":   func() http.HandlerFunc { return s.forwardDeep },
		"panic":  func() http.HandlerFunc { return s.forwardAndPanic },
		"gc":     func() http.HandlerFunc { return s.forwardAmongGarbage },
		"many":   func() http.HandlerFunc { return s.amongMany() },
		"locked": func() http.HandlerFunc { return s.forwardLocked },
		"exec":   func() http.HandlerFunc { return s.forwardAndExec },
		"sum":    func() http.HandlerFunc { return s.forwardWithSum },
	}
}

func (s *service) callFor(r *http.Request) result {
	status, err := s.call("/back/" + requestID(r.URL.Path))
	return result{status, err}
}

//go:noinline
func atDepth(depth uint32, f func() result) result {
	var frame [16]byte
	mark := byte(depth)
	for i := range frame {
		frame[i] = mark
	}
	var got result
	if depth == 0 {
		got = f()
	} else {
		got = atDepth(depth-1, f)
	}
	for i := range frame {
		if frame[i] != mark {
			panic("the stack has changed")
		}
	}
	return got
}

func (s *service) forwardDeep(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	got := inGoroutine(1, func() result {
		return atDepth(number(r.URL.Path)%1024, func() result { return s.callFor(r) })
	})
	s.reply(w, r, start, got.status, got.err)
}

func (s *service) forwardAndPanic(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	got := s.callFor(r)
	if number(r.URL.Path)%4 == 0 {
		panic("on purpose")
	}
	s.reply(w, r, start, got.status, got.err)
}

func (s *service) forwardAmongGarbage(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	got := inGoroutine(1, func() result {
		var mine [][]byte
		for i := 1; i < 200; i++ {
			mine = append(mine, make([]byte, i*16))
		}
		if number(r.URL.Path)%2 == 0 {
			runtime.GC()
		}
		got := s.callFor(r)
		runtime.KeepAlive(mine)
		return got
	})
	s.reply(w, r, start, got.status, got.err)
}

func (s *service) amongMany() http.HandlerFunc {
	var once sync.Once
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		once.Do(func() {
			for i := 0; i < 10000; i++ {
				go func() { select {} }()
			}
		})
		var others sync.WaitGroup
		others.Add(50)
		for i := 0; i < 50; i++ {
			go func() {
				runtime.Gosched()
				others.Done()
			}()
		}
		got := inGoroutine(1, func() result { return s.callFor(r) })
		others.Wait()
		s.reply(w, r, start, got.status, got.err)
	}
}

func (s *service) forwardLocked(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	got := inGoroutine(1, func() result {
		runtime.LockOSThread()
		return s.callFor(r)
	})
	s.reply(w, r, start, got.status, got.err)
}

func (s *service) forwardAndExec(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	if err := exec.Command("/proc/self/exe", "exit").Run(); err != nil {
		s.reply(w, r, start, 0, err)
		return
	}
	got := s.callFor(r)
	s.reply(w, r, start, got.status, got.err)
}

func (s *service) forwardWithSum(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		s.reply(w, r, start, 0, err)
		return
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	got := s.callFor(r)
	if err == nil {
		err = got.err
	}
	w.Header().Set("Checksum", fmt.Sprintf("%x", sum.Sum(nil)))
	s.reply(w, r, start, got.status, err)
}
