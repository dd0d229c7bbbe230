// A front on echo, version 5; see ../common.
package main

import (
	"github.com/labstack/echo/v5"
	"net/http"

	chain "example.org/common"
)

func main() {
	s := chain.New()
	e := echo.New()
	for _, mode := range chain.Modes {
		e.Group("/"+mode).GET("/:id", func(c *echo.Context) error {
			return c.String(s.Work(c.Request().Context(), c.Request().URL.Path), "front\n")
		})
	}
	s.Ready()
	chain.Fail(http.ListenAndServe(s.Address(), e))
}
