// A front on gin; see ../common.
package main

import (
	"github.com/gin-gonic/gin"

	chain "example.org/common"
)

func main() {
	s := chain.New()
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(gin.Recovery())
	for _, mode := range chain.Modes {
		engine.Group("/"+mode).GET("/:id", func(c *gin.Context) {
			c.String(s.Work(c.Request.Context(), c.Request.URL.Path), "front\n")
		})
	}
	s.Ready()
	chain.Fail(engine.Run(s.Address()))
}
