// A Go service that an OpenTelemetry SDK instruments, for the tests of header insertion:
//
//	sdk back  PORT LOG            answers every request
//	sdk front PORT LOG BACK_PORT  calls back once for each request
//
// LOG has a JSON object for each request that was received (role "server": its traceparent headers, and the ids that the
// SDK has given its span and that of its parent) and for each that was sent (role "client": what the SDK has put in).
package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
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

func (l *requestLog) write(role string, r *http.Request) {
	span := trace.SpanFromContext(r.Context())
	parent := ""
	if made, ok := span.(sdktrace.ReadOnlySpan); ok && made.Parent().IsValid() {
		parent = made.Parent().SpanID().String()
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fmt.Fprintf(l.out, `{"id":%q,"role":%q,"path":%q,"headers":%q,"trace":%q,"span":%q,"parent":%q}`+"\n",
		r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], role, r.URL.Path,
		strings.Join(r.Header["Traceparent"], " "), span.SpanContext().TraceID(), span.SpanContext().SpanID(), parent)
}

// logged is the transport below the SDK's.
type logged struct{ log *requestLog }

func (t logged) RoundTrip(r *http.Request) (*http.Response, error) {
	t.log.write("client", r)
	return http.DefaultTransport.RoundTrip(r)
}

func main() {
	role, port, log := os.Args[1], os.Args[2], openLog(os.Args[3])
	otel.SetTracerProvider(sdktrace.NewTracerProvider()) // samples all, exports nothing
	otel.SetTextMapPropagator(propagation.TraceContext{})
	client := &http.Client{Transport: otelhttp.NewTransport(logged{log})}
	handler := func(w http.ResponseWriter, r *http.Request) {
		log.write("server", r)
		if role == "back" {
			return
		}
		path := "/back/" + r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		request, err := http.NewRequestWithContext(r.Context(), "GET", "http://127.0.0.1:"+os.Args[4]+path, nil)
		if err != nil {
			panic(err)
		}
		response, err := client.Do(request)
		if err != nil {
			panic(err)
		}
		defer response.Body.Close()
		io.Copy(w, response.Body)
	}
	fmt.Println("ready")
	server := &http.Server{Addr: "127.0.0.1:" + port, Handler: otelhttp.NewHandler(http.HandlerFunc(handler), "served")}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}
