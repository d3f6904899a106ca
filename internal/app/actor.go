package app

import (
	"context"
	"os"
	"os/user"
	"strconv"

	"github.com/holdfast-memory/holdfast/internal/access"
)

// AsUser returns a context whose acts are those of the user of the operating system who runs the command.
func AsUser(ctx context.Context) context.Context {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return access.As(ctx, access.Actor{Name: "user:" + name, Origin: "cli"})
}
