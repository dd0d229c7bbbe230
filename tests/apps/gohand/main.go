// A Go program that hands its connection on, for the tests of header insertion: hand PORT SOCKET PROGRAM [ARGUMENT...].
// Commands come by standard input, each is answered with a line:
//
//	request PATH  sends a request on the connection, which is made with the first one, and reads the answer
//	pass          sends the connection to whoever listens on SOCKET, and keeps it
//	exec          becomes PROGRAM, whose last argument is the connection's file descriptor
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
)

type hand struct {
	conn   *net.TCPConn
	reader *bufio.Reader
}

func (h *hand) request(port, path string) error {
	if h.conn == nil {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return err
		}
		h.conn, h.reader = conn.(*net.TCPConn), bufio.NewReader(conn)
	}
	if _, err := io.WriteString(h.conn, "GET "+path+" HTTP/1.1\r\nHost: peer\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(h.reader, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func (h *hand) pass(name string) error {
	file, err := h.conn.File()
	if err != nil {
		return err
	}
	defer file.Close()
	to, err := net.Dial("unix", name)
	if err != nil {
		return err
	}
	defer to.Close()
	_, _, err = to.(*net.UnixConn).WriteMsgUnix([]byte("x"), syscall.UnixRights(int(file.Fd())), nil)
	return err
}

func (h *hand) exec(argv []string) error {
	file, err := h.conn.File()
	if err != nil {
		return err
	}
	fd, err := syscall.Dup(int(file.Fd())) // without close-on-exec
	if err != nil {
		return err
	}
	return syscall.Exec(argv[0], append(argv, strconv.Itoa(fd)), os.Environ())
}

func main() {
	h := &hand{}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var err error
		switch words := strings.Fields(lines.Text()); words[0] {
		case "request":
			err = h.request(os.Args[1], words[1])
		case "pass":
			err = h.pass(os.Args[2])
		case "exec":
			err = h.exec(os.Args[3:])
		}
		fmt.Println(lines.Text(), err)
	}
}
