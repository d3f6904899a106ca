package endtoend

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

const (
	unitDir      = "../../deploy/systemd"
	installedBin = "/usr/local/lib/holdfast"
	installedEnv = "/etc/holdfast/holdfast.env"
)

// TestSystemd holds the units against systemd's own reader and runs what they run.
func TestSystemd(t *testing.T) {
	t.Parallel()

	t.Run("UnitsAreVerified", func(t *testing.T) {
		t.Parallel()
		bin, dir := testkit.Binaries(t), t.TempDir()
		files, err := filepath.Glob(unitDir + "/holdfast-*")
		if err != nil || len(files) < 4 {
			t.Fatalf("%d units: %v", len(files), err)
		}
		args := []string{"verify", "--man=no", "--recursive-errors=yes"}
		for _, file := range files {
			path := filepath.Join(dir, filepath.Base(file))
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(readFile(t, file), installedBin, bin)), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, path)
		}
		cmd := exec.CommandContext(t.Context(), "systemd-analyze", args...)
		out, err := cmd.CombinedOutput()
		for line := range strings.Lines(string(out)) { // it reads the machine's own units as well
			if strings.Contains(line, dir) || strings.Contains(line, "holdfast") {
				t.Errorf("systemd says: %s", line)
			}
		}
		if err != nil {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	})

	t.Run("CommandsRun", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t, testkit.NewDatabase(t))
		var address string
		for _, name := range []string{"api", "worker"} {
			u := s.unit(name)
			p := testkit.StartProcess(t, testkit.ProcessConfig{Path: u.path, Args: u.args, Env: u.env})
			p.WaitForOutput(`"message":"ready"`, patience)
			// What the images ask, too.
			if code := testkit.StartProcess(t, testkit.ProcessConfig{Path: u.path, Args: []string{"--probe"}, Env: u.env}).Wait(patience); code != 0 {
				t.Errorf("%s is ready and its probe ends with %d", name, code)
			}
			if name == "api" {
				address = u.listen
			}
			defer func() {
				p.Signal(syscall.SIGTERM)
				if code := p.Wait(patience); code != 0 {
					t.Errorf("%s was stopped and ended with %d", name, code)
				}
				if code := testkit.StartProcess(t, testkit.ProcessConfig{Path: u.path, Args: []string{"--probe"}, Env: u.env}).Wait(patience); code != 1 {
					t.Errorf("%s is gone and its probe ends with %d", name, code)
				}
			}()
		}
		s.api = "http://" + address
		s.succeeded(s.add("unit", conversation("unit", "I work as a nurse.")))
		u := s.unit("repair")
		if code := testkit.StartProcess(t, testkit.ProcessConfig{Path: u.path, Args: u.args, Env: u.env}).Wait(patience); code != 0 {
			t.Errorf("repair ended with %d", code)
		}
	})
}

// unit is what a service runs here: its program as built, with the example's environment and this test's servers.
type unit struct {
	path   string
	args   []string
	env    []string
	listen string
}

func (s *system) unit(name string) unit {
	s.t.Helper()
	text := readFile(s.t, filepath.Join(unitDir, "holdfast-"+name+".service"))
	var u unit
	example := false
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "ExecStart":
			command := strings.Fields(value)
			if filepath.Dir(command[0]) != installedBin {
				s.t.Fatalf("%s runs %s", name, command[0])
			}
			u.path, u.args = filepath.Join(s.bin, filepath.Base(command[0])), command[1:]
		case "Environment":
			u.env = append(u.env, value)
		case "EnvironmentFile":
			example = example || value == installedEnv
		}
	}
	if u.path == "" || !example || len(u.env) != 1 {
		s.t.Fatalf("the unit of %s isn't read as it is written: %+v", name, u)
	}
	u.listen = freeAddress(s.t)
	own := localdev.WorkerLogin
	if name == "api" {
		own = localdev.APILogin
	}
	u.env = append(append(s.exampleEnv(), u.env...),
		"HOLDFAST_NATS_URL="+s.nats.URL(), "HOLDFAST_LISTEN="+u.listen, "HOLDFAST_ADMIN_LISTEN="+freeAddress(s.t))
	for _, entry := range testkit.DatabaseEnv(s.url) {
		variable, value, _ := strings.Cut(entry, "=")
		if strings.HasSuffix(variable, "_URL") {
			value = testkit.As(s.t, own, value)
		}
		u.env = append(u.env, variable+"="+value)
	}
	return u
}

// exampleEnv is the example as systemd reads it. Lines that are commented out show settings that exist.
func (s *system) exampleEnv() []string {
	s.t.Helper()
	help, err := exec.CommandContext(s.t.Context(), filepath.Join(s.bin, "worker"), "--help").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	variable := regexp.MustCompile(`^#?(HOLDFAST_[A-Z_]+)=(.*)$`)
	var env []string
	lines := bufio.NewScanner(strings.NewReader(readFile(s.t, unitDir+"/holdfast.env.example")))
	for lines.Scan() {
		found := variable.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		if !strings.Contains(string(help), "$"+found[1]) {
			s.t.Errorf("the example has %s, which is no setting", found[1])
		}
		if !strings.HasPrefix(lines.Text(), "#") {
			env = append(env, found[1]+"="+strings.Trim(found[2], `"`))
		}
	}
	if len(env) < 4 {
		s.t.Fatalf("the example sets %v", env)
	}
	return env
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
