package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

type client struct {
	address, dir string
	random       *rand.Rand
	dialed       int
}

// dial connects; so many lines of the daemon's may be in what is sent.
func (c *client) dial(least, most int) (*recorded, error) {
	c.dialed++
	own := net.IPv4(127, byte(1+c.dialed>>16), byte(c.dialed>>8), byte(c.dialed))
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: own}}
	conn, err := dialer.Dial("tcp", c.address)
	if err != nil {
		return nil, err
	}
	kept, err := record(conn, c.dir, true)
	if err != nil {
		return nil, err
	}
	kept.least, kept.most = least, most
	return kept, nil
}

// http is a client of net/http with connections of its own. Each request may have a line or must have none.
type httpClient struct {
	*http.Client
	conns []*recorded
}

func (c *client) http() *httpClient {
	h := &httpClient{}
	h.Client = &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			conn, err := c.dial(0, 0)
			if err == nil {
				h.conns = append(h.conns, conn)
			}
			return conn, err
		},
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: true},
		ExpectContinueTimeout: time.Second,
	}}
	return h
}

func (h *httpClient) expect(least, most int) {
	conn := h.conns[len(h.conns)-1]
	conn.least += least
	conn.most += most
}

func (h *httpClient) close() { h.CloseIdleConnections() }

// lookingLikeHeads is a body in which requests seem to begin.
func lookingLikeHeads(n int) []byte {
	const head = "GET /body HTTP/1.1\r\nHost: nobody\r\nContent-Length: 0\r\n\r\n"
	return []byte(strings.Repeat(head, n/len(head)+1))[:n]
}

func (c *client) body(n int) []byte {
	if c.random.Intn(3) == 0 {
		return lookingLikeHeads(n)
	}
	made := make([]byte, n)
	c.random.Read(made)
	return made
}

// hidden keeps net/http from learning a body's length.
type hidden struct{ io.Reader }

func (c *client) do(h *httpClient, request *http.Request, sent []byte, least, most int) error {
	response, err := h.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if expected := fmt.Sprintf("%d %x", len(sent), sha256.Sum256(sent)); string(got) != expected {
		return fmt.Errorf("%s %s: the peer has read %s, not %s", request.Method, request.URL, got, expected)
	}
	h.expect(least, most)
	return nil
}

// bodies of every length, with their length told and in chunks, on one connection.
func (c *client) bodies(sizes ...int) error {
	h := c.http()
	defer h.close()
	for _, n := range sizes {
		for _, isChunked := range []bool{false, true} {
			sent := c.body(n)
			var body io.Reader = bytes.NewReader(sent)
			if isChunked {
				body = hidden{body}
			}
			request, err := http.NewRequest("POST", "http://"+c.address+fmt.Sprintf("/body/%d", n), body)
			if err != nil {
				return err
			}
			if c.random.Intn(4) == 0 {
				request.Header.Set("Expect", "100-continue")
			}
			if err := c.do(h, request, sent, 1, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownHeaders, however they are written and wherever they are in the head, are left alone.
func (c *client) ownHeaders() error {
	h := c.http()
	defer h.close()
	paddings := []int{0, 100, 300, 4000, 9000}
	for n := 900; n < 2100; n += 37 { // heads that are looked at in parts, and about as long as the buffer
		paddings = append(paddings, n, n+2500)
	}
	for _, name := range []string{"Traceparent", "traceparent", "TRACEPARENT", "tRaCePaReNt"} {
		for _, padding := range paddings {
			request, err := http.NewRequest("GET", "http://"+c.address+"/own", nil)
			if err != nil {
				return err
			}
			request.Header[name] = []string{own}
			if padding > 0 {
				for i := 0; i < 3; i++ {
					request.Header.Set(fmt.Sprintf("A-Padding-%d", i), strings.Repeat("x", padding/3))
				}
			}
			if err := c.do(h, request, nil, 0, 0); err != nil {
				return err
			}
		}
		paddings = paddings[:5] // all of them with one name
	}
	return nil
}

// longHeads are written in several parts by net/http's buffer of 4 KB.
func (c *client) longHeads() error {
	h := c.http()
	defer h.close()
	for padding := 3900; padding < 12000; padding += 100 + c.random.Intn(200) {
		request, err := http.NewRequest("GET", "http://"+c.address+"/long", nil)
		if err != nil {
			return err
		}
		for i := 0; i < 20; i++ {
			request.Header.Set(fmt.Sprintf("Padding-%d", i), strings.Repeat("y", padding/20))
		}
		if err := c.do(h, request, nil, 0, 1); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) secure() error {
	h := c.http()
	defer h.close()
	request, err := http.NewRequest("GET", "https://"+c.address+"/secure", nil)
	if err != nil {
		return err
	}
	return c.do(h, request, nil, 0, 0)
}

func roundTrip(conn net.Conn, reader *bufio.Reader, parts ...string) error {
	for _, part := range parts {
		if _, err := io.WriteString(conn, part); err != nil {
			return err
		}
		if len(parts) > 1 {
			time.Sleep(200 * time.Microsecond)
		}
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// byHand sends heads in parts of its own choice, and what looks like heads at the beginning of later writes.
func (c *client) byHand() error {
	const head = "GET /hand HTTP/1.1\r\nHost: peer\r\n\r\n"
	body := "GET /body HTTP/1.1\r\nHost: nobody\r\n\r\n"
	conn, err := c.dial(0, 0)
	if err != nil {
		return err
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	steps := []struct {
		parts       []string
		least, most int
	}{
		{[]string{head}, 1, 1},
		{strings.Split(head, ""), 0, 0}, // byte by byte: the blank line is cut
		{[]string{head[:5], head[5:20], head[20:]}, 1, 1},
		{[]string{head[:len(head)-3], head[len(head)-3:]}, 1, 1},
		{[]string{head[:len(head)-2], head[len(head)-2:]}, 1, 1},
		{[]string{head[:len(head)-1], head[len(head)-1:]}, 0, 0},
		{[]string{"GET /hand HTTP/1.1\nHost: peer\n\n"}, 0, 0}, // line ends that are not CRLF
		{[]string{"GET /hand HTTP/1.1\r\nHost: peer\r\ntrace", "parent: " + own + "\r\n\r\n"}, 0, 0},
		{[]string{"GET /hand HTTP/1.1\r\nHost: peer\r\ntraceparent:" + own + "\r\n\r\n"}, 0, 0},
		{[]string{fmt.Sprintf("POST /hand HTTP/1.1\r\nHost: peer\r\nContent-Length: %d\r\n\r\n", 2*len(body)), body, body}, 1, 1},
		{[]string{fmt.Sprintf("POST /hand HTTP/1.1\r\nHost: peer\r\nContent-Length: %d\r\n\r\n%s", 2*len(body), body), body}, 1, 1},
		{[]string{"POST /hand HTTP/1.1\r\nHost: peer\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n", len(body)), body,
			"\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(body), body), "0\r\n\r\n"}, 1, 1},
		{[]string{head}, 1, 1},
	}
	for i, step := range steps {
		if err := roundTrip(conn, reader, step.parts...); err != nil {
			return fmt.Errorf("by hand, step %d: %w", i, err)
		}
		conn.least += step.least
		conn.most += step.most
	}
	// a first line that is looked at in several parts, cut in two at each place
	long := "GET /hand/" + strings.Repeat("x", 400) + " HTTP/1.1\r\nHost: peer\r\n\r\n"
	for i := 1; i < len(long)-2; i += 1 + c.random.Intn(20) {
		if err := roundTrip(conn, reader, long[:i], long[i:]); err != nil {
			return fmt.Errorf("by hand, cut at %d: %w", i, err)
		}
		conn.least++
		conn.most++
	}
	// two at a time: what is sent before the one ahead is answered goes as it is
	if err := roundTrip(conn, reader, head+head); err != nil {
		return err
	}
	return roundTrip(conn, reader, "")
}

// tunnel sends a head that makes the connection a tunnel, and heads through it.
func (c *client) tunnel(head string, most int) error {
	conn, err := c.dial(most, most)
	if err != nil {
		return err
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	if _, err := io.WriteString(conn, head); err != nil {
		return err
	}
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return err
		}
		if line == "\r\n" {
			break
		}
	}
	return echo(conn, reader, lookingLikeHeads(500))
}

func echo(conn net.Conn, reader io.Reader, sent []byte) error {
	got := make([]byte, len(sent))
	for i := 0; i < 5; i++ {
		if _, err := conn.Write(sent); err != nil {
			return err
		}
		if _, err := io.ReadFull(reader, got); err != nil {
			return err
		}
		if !bytes.Equal(got, sent) {
			return errors.New("an echo is not what was sent")
		}
	}
	return nil
}

// raw is a protocol that is no HTTP, though what follows its first byte looks so.
func (c *client) raw() error {
	conn, err := c.dial(0, 0)
	if err != nil {
		return err
	}
	defer conn.Close()
	return echo(conn, conn, append([]byte("#"), lookingLikeHeads(1000)...))
}

func run(address, dir string, rounds int, seed int64) error {
	c := &client{address: address, dir: dir, random: rand.New(rand.NewSource(seed))}
	os.Stdin.Read(make([]byte, 1)) // until it is traced
	for i := 0; i < rounds; i++ {
		sizes := []int{0, 1, 100, 3900, 4000, 4095, 4096, 4097, 32768, 65536, c.random.Intn(200000)}
		if i%20 == 0 {
			sizes = append(sizes, 1<<20, 10<<20)
		}
		c.random.Shuffle(len(sizes), func(a, b int) { sizes[a], sizes[b] = sizes[b], sizes[a] })
		steps := []func() error{
			func() error { return c.bodies(sizes...) },
			c.ownHeaders, c.longHeads, c.secure, c.byHand, c.raw,
			func() error { return c.lines(8, 60, 1) },
			func() error { return c.lines(90, 2, 1) },
			func() error { return c.lines(90, 2, 2) },
			func() error { return c.lines(90, 40, 7) },
			func() error { return c.lines(200, 40, 40) },
			func() error {
				return c.tunnel("GET /ws HTTP/1.1\r\nHost: peer\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 1)
			},
			func() error { return c.tunnel("CONNECT peer:80 HTTP/1.1\r\nHost: peer:80\r\n\r\n", 0) },
		}
		for n, step := range steps {
			if err := step(); err != nil {
				return fmt.Errorf("round %d, step %d: %w", i, n, err)
			}
		}
	}
	time.Sleep(200 * time.Millisecond) // net/http closes its connections in the background
	return nil
}
