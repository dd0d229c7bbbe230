// A front on fasthttp, which also calls by it: in the handler's goroutine (do), and with a time limit (timeout,
// deadline); see ../common.
package main

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	chain "example.org/common"
)

func caller(do func(request *fasthttp.Request, response *fasthttp.Response) error) func(string) (int, error) {
	return func(url string) (int, error) {
		request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(request)
		defer fasthttp.ReleaseResponse(response)
		request.SetRequestURI(url)
		err := do(request, response)
		return response.StatusCode(), err
	}
}

func main() {
	s := chain.New()
	client := &fasthttp.Client{MaxConnsPerHost: 256}
	s.Add("do", caller(client.Do))
	s.Add("timeout", caller(func(request *fasthttp.Request, response *fasthttp.Response) error {
		return client.DoTimeout(request, response, time.Minute)
	}))
	s.Add("deadline", caller(func(request *fasthttp.Request, response *fasthttp.Response) error {
		return client.DoDeadline(request, response, time.Now().Add(time.Minute))
	}))
	s.Ready()
	chain.Fail(fasthttp.ListenAndServe(s.Address(), func(c *fasthttp.RequestCtx) {
		c.SetStatusCode(s.Work(context.Background(), string(c.Path())))
		c.SetBodyString("front\n")
	}))
}
