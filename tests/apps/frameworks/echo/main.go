// A front on echo, to its version 4; see ../common.
package main

import (
	"github.com/labstack/echo/v4"

	chain "example.org/common"
)

func main() {
	s := chain.New()
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	for _, mode := range chain.Modes {
		e.Group("/"+mode).GET("/:id", func(c echo.Context) error {
			return c.String(s.Work(c.Request().Context(), c.Request().URL.Path), "front\n")
		})
	}
	s.Ready()
	chain.Fail(e.Start(s.Address()))
}
