// Package chain is what the services of the other folders have in common: each is a front on a framework of its own,
//
//	front PORT LOG BACK_PORT
//
// and calls back once for each request, in a way that the first word of the request's path names (see Work). It keeps a
// record of what it did for the judge of the end-to-end tests, one JSON object a line, as ../../go does.
package chain

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Modes are the ways to call that every front has.
var Modes = []string{"plain", "context", "child", "child-context"}

// Service is a front.
type Service struct {
	Back   string // URL
	Port   string
	client *http.Client
	mutex  sync.Mutex
	log    *bufio.Writer
	more   map[string]func(url string) (int, error)
}

// New reads the command line.
func New() *Service {
	file, err := os.Create(os.Args[2])
	if err != nil {
		Fail(err)
	}
	s := &Service{
		Port:   os.Args[1],
		Back:   "http://127.0.0.1:" + os.Args[3],
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
		log:    bufio.NewWriter(file),
		more:   make(map[string]func(url string) (int, error)),
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		s.mutex.Lock() // never released: no line may follow the last flush
		s.log.Flush()
		os.Exit(0)
	}()
	return s
}

// Fail ends the service.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Address is where the service listens.
func (s *Service) Address() string { return "127.0.0.1:" + s.Port }

// Ready tells who started the service that it listens, or is about to.
func (s *Service) Ready() { fmt.Println("ready") }

// Add makes one more way to call.
func (s *Service) Add(mode string, call func(url string) (int, error)) { s.more[mode] = call }

func requestID(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func (s *Service) write(role, path string, status int, start, end time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fmt.Fprintf(s.log, `{"id":%q,"role":%q,"path":%q,"status":%d,"start":%d,"end":%d}`+"\n",
		requestID(path), role, path, status, start.UnixNano(), end.UnixNano())
}

func (s *Service) byHTTP(ctx context.Context, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return 0, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (s *Service) call(ctx context.Context, mode, url string) (int, error) {
	if call := s.more[mode]; call != nil {
		return call(url)
	}
	if !strings.HasSuffix(mode, "context") {
		ctx = context.Background()
	}
	if !strings.HasPrefix(mode, "child") {
		return s.byHTTP(ctx, url)
	}
	var status int
	var err error
	done := make(chan struct{})
	go func() {
		status, err = s.byHTTP(ctx, url)
		close(done)
	}()
	<-done
	return status, err
}

// Work calls back for a request by net/http: in the handler's goroutine (plain), with the request's context (context), in
// a goroutine that the handler starts and waits for (child, child-context); or in a way that was added. It returns the
// status to answer with.
func (s *Service) Work(ctx context.Context, path string) int {
	start := time.Now()
	mode := strings.SplitN(path, "/", 3)[1]
	to := "/back/" + requestID(path)
	before := time.Now()
	got, err := s.call(ctx, mode, s.Back+to)
	status := 200
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		s.write("client", to, got, before, time.Now())
	}
	if err != nil || got >= 500 {
		status = 502
	}
	s.write("server", path, status, start, time.Now())
	return status
}
