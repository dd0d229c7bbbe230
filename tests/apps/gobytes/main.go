// A Go program whose connections are recorded byte by byte, for the tests of header insertion: what a client has
// written, by its own account, is compared with what its peer has read.
//
//	bytes peer   PORT DIR               answers HTTP/1, tunnels and protocols of its own; records what it reads
//	bytes client PORT DIR ROUNDS SEED   sends requests of every form when told to by standard input; records
//	                                    what it writes
//
// A connection's bytes are in DIR/sent-NAME and DIR/read-NAME. NAME is the client's address, which it uses once. It says
// in DIR/lines-NAME how many lines of the daemon's it may have got: "least most".
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// recorded is a connection that keeps what passes it.
type recorded struct {
	net.Conn
	dir         string
	out         *os.File
	isClient    bool
	least, most int
	once        sync.Once
	writing     sync.Mutex // held from a write until it is kept
}

func record(conn net.Conn, dir string, isClient bool) (*recorded, error) {
	name, address := "read", conn.RemoteAddr()
	if isClient {
		name, address = "sent", conn.LocalAddr()
	}
	out, err := os.Create(filepath.Join(dir, name+"-"+address.String()))
	if err != nil {
		return nil, err
	}
	return &recorded{Conn: conn, dir: dir, out: out, isClient: isClient}, nil
}

func (c *recorded) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	if !c.isClient && n > 0 {
		c.out.Write(to[:n])
	}
	return n, err
}

func (c *recorded) Write(from []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err := c.Conn.Write(from)
	if c.isClient && n > 0 {
		c.out.Write(from[:n])
	}
	return n, err
}

// ReadFrom hides that of TCP connections, which would send a file past Write.
func (c *recorded) ReadFrom(from io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, from)
}

func (c *recorded) Close() error {
	err := c.Conn.Close() // ends a write that waits; net/http does not wait for it
	c.once.Do(func() {
		c.writing.Lock()
		defer c.writing.Unlock()
		if c.isClient {
			name := filepath.Join(c.dir, "lines"+filepath.Base(c.out.Name())[len("sent"):])
			os.WriteFile(name, []byte(fmt.Sprintf("%d %d\n", c.least, c.most)), 0o644)
		}
		c.out.Close()
	})
	return err
}

func main() {
	role, port, dir := os.Args[1], os.Args[2], os.Args[3]
	if role == "peer" {
		fmt.Fprintln(os.Stderr, serve("127.0.0.1:"+port, dir))
		os.Exit(1)
	}
	rounds, err := strconv.Atoi(os.Args[4])
	if err == nil {
		var seed int64
		seed, err = strconv.ParseInt(os.Args[5], 10, 64)
		if err == nil {
			err = run("127.0.0.1:"+port, dir, rounds, seed)
		}
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}
