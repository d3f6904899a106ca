package check

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// project reads compose.yaml as `docker compose` does, with all of its profiles.
func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{root(t, "deploy", "compose.yaml")}, cli.WithProfiles([]string{"*"}), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// job tells whether a service is to end by itself.
func job(s types.ServiceConfig) bool { return s.Restart == "no" }

func TestCompose(t *testing.T) {
	t.Parallel()
	p := project(t)

	t.Run("HasWhatItPromises", func(t *testing.T) {
		t.Parallel()
		count := map[string]int{}
		for name, s := range p.Services {
			kind := strings.TrimRight(name, "-0123456789")
			count[kind] += s.GetScale()
		}
		want := map[string]int{
			"postgres": 1, "roles": 1, "migrate": 1, "nats-setup": 1, "nats": 3, "api": 2, "worker": 3, "repair": 1, "holdfast": 1,
		}
		if !maps.Equal(count, want) {
			t.Errorf("there are %v, want %v", count, want)
		}
	})

	t.Run("ServicesAreClosed", func(t *testing.T) {
		t.Parallel()
		for name, s := range p.Services {
			limits := types.Resource{}
			if s.Deploy != nil && s.Deploy.Resources.Limits != nil {
				limits = *s.Deploy.Resources.Limits
			}
			switch {
			case !s.ReadOnly:
				t.Errorf("%s can write to its root", name)
			case !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || s.Privileged:
				t.Errorf("%s keeps capabilities", name)
			case !slices.Contains(s.SecurityOpt, "no-new-privileges:true"):
				t.Errorf("%s may gain privileges", name)
			case limits.MemoryBytes == 0 || limits.NanoCPUs.Value() == 0 || limits.Pids == 0:
				t.Errorf("%s has no limit: %+v", name, limits)
			case s.Build == nil && (s.User == "" || strings.HasPrefix(s.User, "0") || s.User == "root"):
				t.Errorf("%s runs as %q", name, s.User)
			}
			for _, port := range s.Ports {
				if port.HostIP != "127.0.0.1" {
					t.Errorf("%s is open on %q", name, port.HostIP)
				}
			}
		}
	})

	t.Run("OrderCanBeKept", func(t *testing.T) {
		t.Parallel()
		all := stages(t)
		healthy := func(s types.ServiceConfig) bool {
			if s.HealthCheck != nil && !s.HealthCheck.Disable {
				return true
			}
			if s.Build == nil {
				return false
			}
			health, ok := last[*instructions.HealthCheckCommand](lineage(t, all, s.Build.Target))
			return ok && health.Health.Test[0] != "NONE"
		}
		for name, s := range p.Services {
			if !job(s) && !healthy(s) {
				t.Errorf("nobody can tell whether %s is well", name)
			}
			for on, how := range s.DependsOn {
				dependency := p.Services[on]
				switch how.Condition {
				case types.ServiceConditionHealthy:
					if !healthy(dependency) {
						t.Errorf("%s waits for the health of %s, which has none", name, on)
					}
				case types.ServiceConditionCompletedSuccessfully:
					if !job(dependency) {
						t.Errorf("%s waits for the end of %s, which goes on", name, on)
					}
				default:
					t.Errorf("%s waits for nothing of %s: %s", name, on, how.Condition)
				}
			}
			if s.StopGracePeriod != nil && time.Duration(*s.StopGracePeriod) < 30*time.Second { // all of a process's stop
				t.Errorf("%s is killed after %s", name, s.StopGracePeriod)
			}
		}
	})

	t.Run("VariablesAreKnown", func(t *testing.T) {
		t.Parallel()
		known := settings(t)
		for name, s := range p.Services {
			for variable, value := range s.Environment {
				if strings.HasPrefix(variable, "HOLDFAST_") && !known[variable] {
					t.Errorf("%s sets %s, which is no setting", name, variable)
				}
				if value == nil {
					t.Errorf("%s takes %s from the shell without a default", name, variable)
				}
			}
		}
	})

	t.Run("SecretsAreThoseOfTheScript", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		script := filepath.Join(dir, "secrets.sh")
		if err := os.WriteFile(script, []byte(read(t, root(t, "deploy", "compose", "secrets.sh"))), 0o700); err != nil {
			t.Fatal(err)
		}
		run(t, nil, script)
		made := map[string]string{}
		for name, secret := range p.Secrets {
			if filepath.Dir(secret.File) != root(t, "deploy", "compose", "secrets") {
				t.Errorf("%s is in %s, which git does not ignore", name, secret.File)
			}
			made[name] = strings.TrimSpace(read(t, filepath.Join(dir, "secrets", filepath.Base(secret.File))))
		}
		run(t, nil, script)
		for name, before := range made {
			if now := read(t, filepath.Join(dir, "secrets", name)); strings.TrimSpace(now) != before {
				t.Errorf("%s is another one after the second run", name)
			}
		}
		if made["owner_password"] != made["owner_login"][strings.LastIndex(made["owner_login"], ":")+1:] {
			t.Error("the owner's login has another password than the server gets")
		}
		for name, s := range p.Services {
			fits(t, name, s, made)
		}
	})

	t.Run("MountedFilesAreThere", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		setup := slices.Clone([]string(p.Services["nats-setup"].Command))
		if setup[0] != "nats-setup" || setup[1] != p.Services["nats-setup"].Volumes[0].Target {
			t.Fatalf("nats-setup runs %v", setup)
		}
		setup[1] = dir
		run(t, nil, program(t, "holdfast"), setup...)
		for name, s := range p.Services {
			for _, v := range s.Volumes {
				var err error
				switch {
				case v.Type == types.VolumeTypeBind:
					_, err = os.Stat(v.Source)
				case v.Source == "nats" && v.Volume != nil && v.Volume.Subpath != "":
					_, err = os.Stat(filepath.Join(dir, v.Volume.Subpath))
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		config := read(t, filepath.Join(dir, "servers", "nats-1", "nats.conf"))
		if at := p.Services["nats-1"].Volumes[0].Target; !strings.Contains(config, `"`+at+`/store"`) || !strings.Contains(config, `"`+at+`/nats-1.key"`) {
			t.Errorf("the server looks for its files elsewhere than in %s:\n%s", at, config)
		}
	})

	t.Run("ServersAreThoseOfTheURLs", func(t *testing.T) {
		t.Parallel()
		for name, s := range p.Services {
			if servers := s.Environment["HOLDFAST_NATS_URL"]; servers != nil {
				for server := range strings.SplitSeq(*servers, ",") {
					u, err := url.Parse(server)
					if err != nil || u.Scheme != "tls" || !slices.Contains(p.Services["nats-setup"].Command, "--server="+u.Hostname()) {
						t.Errorf("%s asks %s: %v", name, server, err)
					}
					if _, ok := p.Services[u.Hostname()]; !ok {
						t.Errorf("%s asks %s, which is no service", name, server)
					}
				}
			}
		}
	})
}

// fits fails the test when a service's database URL and the password file that it names don't fit together.
func fits(t *testing.T, name string, s types.ServiceConfig, made map[string]string) {
	t.Helper()
	text := s.Environment["HOLDFAST_DATABASE_URL"]
	if text == nil {
		return
	}
	u, err := url.Parse(*text)
	if err != nil {
		t.Fatal(err)
	}
	if _, has := u.User.Password(); has {
		t.Errorf("%s has a password in its environment", name)
	}
	secret := strings.TrimPrefix(u.Query().Get("passfile"), "/run/secrets/")
	if !slices.ContainsFunc(s.Secrets, func(c types.ServiceSecretConfig) bool { return c.Source == secret }) {
		t.Errorf("%s is not given %q", name, secret)
	}
	want := fmt.Sprintf("%s:%s:%s:%s:", u.Hostname(), u.Port(), strings.TrimPrefix(u.Path, "/"), u.User.Username())
	if !strings.HasPrefix(made[secret], want) {
		t.Errorf("%s logs in as %s, and %s is for another", name, want, secret)
	}
}
