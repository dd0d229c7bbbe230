package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"time"
)

// one is a listener of a connection that is there already.
type one struct {
	conns chan net.Conn
	net.Listener
}

func (l *one) Accept() (net.Conn, error) { return <-l.conns, nil }

// serve tells by the first byte what a connection is: TLS, the echo of a protocol of its own ('#'), lines
// of a cache ('g'), or HTTP/1.
func serve(address, dir string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	plain := &one{make(chan net.Conn), listener}
	secure := &one{make(chan net.Conn), listener}
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(answer), MaxHeaderBytes: 1 << 20}
	go server.Serve(plain)
	go server.Serve(tls.NewListener(secure, &tls.Config{Certificates: []tls.Certificate{certificate}}))
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		kept, err := record(conn, dir, false)
		if err != nil {
			return err
		}
		go sort(kept, plain, secure)
	}
}

// begun is a connection whose first byte has been read.
type begun struct {
	*recorded
	first []byte
}

func (c *begun) Read(to []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(to, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.recorded.Read(to)
}

func sort(conn *recorded, plain, secure *one) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		conn.Close()
		return
	}
	whole := &begun{conn, first}
	switch first[0] {
	case 0x16:
		secure.conns <- whole
	case '#':
		io.Copy(conn, whole)
		conn.Close()
	case 'g':
		cache(conn, whole)
	default:
		plain.conns <- whole
	}
}

// answer tells the length and the sum of the body; what becomes a tunnel is echoed from then on.
func answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == "CONNECT" || r.Header.Get("Upgrade") != "" {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		status := "101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket"
		if r.Method == "CONNECT" {
			status = "200 OK"
		}
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\n\r\n", status)
		io.Copy(conn, buffered)
		return
	}
	sum := sha256.New()
	n, err := io.Copy(sum, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%d %x", n, sum.Sum(nil))
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}, nil
}
