package main

import (
	"context"
	"net"
	"net/http"
	"time"
)

// copiedModes have one more:
//
//	copied  over a connection that copies what it is to send, as those do that encrypt or count it. The request that has
//	        dialed it calls, stays open, and hands the client on to another one, whose call is the connection's last
func (s *service) copiedModes() map[string]func() http.HandlerFunc {
	return map[string]func() http.HandlerFunc{
		"copied": func() http.HandlerFunc { return (&copied{s, make(chan *handed)}).forward },
	}
}

type copyingConn struct {
	net.Conn
}

func (c copyingConn) Write(data []byte) (int, error) {
	return c.Conn.Write(append([]byte(nil), data...))
}

func copying() *http.Transport {
	dialer := &net.Dialer{}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return copyingConn{conn}, nil
		},
	}
}

type handed struct {
	transport *http.Transport
	done      chan bool
}

type copied struct {
	*service
	offered chan *handed
}

func (c *copied) forward(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	path := "/back/" + requestID(r.URL.Path)
	select {
	case h := <-c.offered:
		got, err := c.with(&http.Client{Transport: closing{h.transport}}).call(path)
		h.done <- true
		c.reply(w, r, start, got, err)
	default:
		h := &handed{copying(), make(chan bool, 1)}
		got, err := c.with(&http.Client{Transport: h.transport}).call(path)
		select {
		case c.offered <- h:
			<-h.done
		case <-time.After(200 * time.Millisecond):
			h.transport.CloseIdleConnections()
		}
		c.reply(w, r, start, got, err)
	}
}

// closing has the connection closed behind each call.
type closing struct {
	http.RoundTripper
}

func (c closing) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Close = true
	return c.RoundTripper.RoundTrip(request)
}
