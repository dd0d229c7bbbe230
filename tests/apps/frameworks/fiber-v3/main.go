// A front on fiber, version 3, which also calls by its client; see ../common.
package main

import (
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/client"

	chain "example.org/common"
)

func get(c *client.Client, url string, config client.Config) (int, error) {
	response, err := c.Get(url, config)
	if err != nil {
		return 0, err
	}
	defer response.Close()
	return response.StatusCode(), nil
}

func main() {
	s := chain.New()
	c := client.New()
	s.Add("do", func(url string) (int, error) { return get(c, url, client.Config{}) })
	s.Add("timeout", func(url string) (int, error) { return get(c, url, client.Config{Timeout: time.Minute}) })
	app := fiber.New()
	app.Get("/:mode/:id", func(c fiber.Ctx) error {
		return c.Status(s.Work(c.Context(), string(c.Request().URI().Path()))).SendString("front\n")
	})
	s.Ready()
	chain.Fail(app.Listen(s.Address(), fiber.ListenConfig{DisableStartupMessage: true}))
}
