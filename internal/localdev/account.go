package localdev

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the system user that PostgreSQL runs as, because it refuses to run as root.
type account struct {
	name     string
	uid, gid uint32
	switched bool // this process is root and the servers run as somebody else
}

// serverAccount is the present user, or for root `postgres` and else `nobody`.
func serverAccount() (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{name: fmt.Sprintf("user %d", uid), uid: uint32(uid), gid: uint32(os.Getegid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return account{}, fmt.Errorf("user %s has no numeric id: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return account{}, fmt.Errorf("user %s has no numeric group: %w", name, err)
		}
		return account{name: "user " + name, uid: uint32(uid), gid: uint32(gid), switched: true}, nil
	}
	return account{}, fmt.Errorf("PostgreSQL can't run as root and there is no user postgres or nobody: create one, or run as another user")
}

func (a account) sysProcAttr() *syscall.SysProcAttr {
	if !a.switched {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
}

// AsServer makes cmd, which is not started yet, run as the user that PostgreSQL runs as, and gives that user dir and
// everything in it. It is for servers that refuse to run as root, as PostgreSQL does.
func AsServer(cmd *exec.Cmd, dir string) error {
	a, err := serverAccount()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = a.sysProcAttr()
	return a.own(dir)
}

// prepareParent makes the directory that will hold the data directory, if it is missing, and checks that the account
// can walk to it.
func (a account) prepareParent(dir string) error {
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create %s: %w", dir, err)
		}
		if a.switched {
			// Others may walk through, not list.
			if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // the server's user is not this one
				return fmt.Errorf("open %s for %s: %w", dir, a.name, err)
			}
		}
	}
	if !a.switched {
		return nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", dir, err)
	}
	for {
		ok, err := a.mayEnter(real)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("PostgreSQL runs as %s, which can't enter %s: run `chmod o+x %s` or choose another state directory",
				a.name, real, real)
		}
		up := filepath.Dir(real)
		if up == real {
			return nil
		}
		real = up
	}
}

func (a account) mayEnter(dir string) (bool, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", dir, err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true, nil
	}
	need := fs.FileMode(0o001)
	switch {
	case st.Uid == a.uid:
		need = 0o100
	case st.Gid == a.gid:
		need = 0o010
	}
	return info.Mode().Perm()&need != 0, nil
}

// own gives dir and everything in it to the account, if it has another owner. Without the right to do so it says whose
// the directory is.
func (a account) own(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == a.uid {
		return nil
	}
	if !a.switched {
		return fmt.Errorf("%s belongs to user %d, not to %s: run as that user or choose another state directory", dir, st.Uid, a.name)
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid)) //nolint:gosec // no link is followed, and only the server's user writes here
	})
	if err != nil {
		return fmt.Errorf("give %s to %s: %w", dir, a.name, err)
	}
	return nil
}
