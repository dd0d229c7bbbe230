// A front on fiber, to its version 2, which also calls by its client; see ../common.
package main

import (
	"time"

	"github.com/gofiber/fiber/v2"

	chain "example.org/common"
)

func get(url string, timeout time.Duration) (int, error) {
	agent := fiber.Get(url)
	if timeout != 0 {
		agent.Timeout(timeout)
	}
	status, _, errors := agent.Bytes()
	if len(errors) > 0 {
		return 0, errors[0]
	}
	return status, nil
}

func main() {
	s := chain.New()
	s.Add("do", func(url string) (int, error) { return get(url, 0) })
	s.Add("timeout", func(url string) (int, error) { return get(url, time.Minute) })
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/:mode/:id", func(c *fiber.Ctx) error {
		return c.Status(s.Work(c.UserContext(), string(c.Request().URI().Path()))).SendString("front\n")
	})
	s.Ready()
	chain.Fail(app.Listen(s.Address()))
}
