package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
)

// The protocol of memcached, as far as "get" and "set" go: it is made of lines and of values, in which there may be
// anything, and its first line looks like that of a request until its end is seen.

// cache has nothing and keeps nothing, but reads all of it.
func cache(conn net.Conn, from io.Reader) {
	defer conn.Close()
	reader := bufio.NewReader(from)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		answer := "END\r\n"
		if words := strings.Fields(line); len(words) == 5 && words[0] == "set" {
			var n int64
			fmt.Sscan(words[4], &n)
			if _, err := io.CopyN(io.Discard, reader, n+2); err != nil {
				return
			}
			answer = "STORED\r\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// lines asks for many keys and then sets one to a value that has blank lines.
func (c *client) lines(keyLength, keys, parts int) error {
	conn, err := c.dial(0, 0)
	if err != nil {
		return err
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	value := "one\r\n\r\ntwo"
	get := "get" + strings.Repeat(" "+strings.Repeat("k", keyLength), keys) + "\r\n"
	commands := []string{get, fmt.Sprintf("set k 0 0 %d\r\n%s\r\n", len(value), value), get}
	for _, command := range commands {
		for i := 0; i < parts; i++ {
			part := command[i*len(command)/parts : (i+1)*len(command)/parts]
			if _, err := io.WriteString(conn, part); err != nil {
				return err
			}
		}
		answer, err := reader.ReadString('\n')
		if err != nil || (answer != "END\r\n" && answer != "STORED\r\n") {
			return fmt.Errorf("the cache answers %q: %v", answer, err)
		}
	}
	return nil
}
