package check

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	admission "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

func TestChart(t *testing.T) {
	t.Parallel()

	t.Run("PassesHelmsLinter", func(t *testing.T) {
		t.Parallel()
		for name, values := range examples(t) {
			var given map[string]any
			if err := yaml.Unmarshal([]byte(values), &given); err != nil {
				t.Fatal(err)
			}
			for _, m := range lint.RunAll(root(t, "deploy", "helm", "holdfast"), given, namespace).Messages {
				if m.Severity > support.InfoSev {
					t.Errorf("%s: %s", name, m)
				}
			}
		}
	})

	t.Run("HasItsParts", func(t *testing.T) {
		t.Parallel()
		made, monitors := objects(t, examples(t)["production"])
		if len(of[*appsv1.Deployment](made)) != 3 || len(of[*policyv1.PodDisruptionBudget](made)) != 2 || len(of[*batchv1.Job](made)) != 1 ||
			len(of[*autoscalingv2.HorizontalPodAutoscaler](made)) != 1 || len(of[*networkingv1.NetworkPolicy](made)) != 4 || len(monitors) != 1 {
			t.Errorf("production has %d objects and %d monitors", len(made), len(monitors))
		}
		made, monitors = objects(t, "")
		if len(of[*batchv1.CronJob](made)) != 1 || len(of[*appsv1.Deployment](made)) != 2 || len(of[*corev1.Service](made)) != 3 || len(monitors) != 0 {
			t.Errorf("the defaults have %d objects and %d monitors", len(made), len(monitors))
		}
	})

	t.Run("PodsAreRestricted", func(t *testing.T) {
		t.Parallel()
		evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		if err != nil {
			t.Fatal(err)
		}
		restricted := admission.LevelVersion{Level: admission.LevelRestricted, Version: admission.LatestVersion()}
		each(t, func(t *testing.T, example string, made []runtime.Object) {
			for _, p := range pods(made) {
				if verdict := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &p.ObjectMeta, &p.PodSpec)); !verdict.Allowed {
					t.Errorf("%s: %s", named(example, p.owner), verdict.ForbiddenDetail())
				}
				for _, c := range p.Containers {
					if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
						t.Errorf("%s can write to its root", named(example, p.owner))
					}
					if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
						t.Errorf("%s has no bounds", named(example, p.owner))
					}
				}
				if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken {
					t.Errorf("%s has a token", named(example, p.owner))
				}
			}
		})
	})

	t.Run("VariablesAreKnownAndSecretsAreNamed", func(t *testing.T) {
		t.Parallel()
		known := settings(t)
		secret := regexp.MustCompile(`(DATABASE_URL|DIRECT_URL|API_KEY|ENCRYPTION_KEYS)$`)
		each(t, func(t *testing.T, example string, made []runtime.Object) {
			if len(of[*corev1.Secret](made)) > 0 {
				t.Errorf("%s writes a secret down", example)
			}
			for _, p := range pods(made) {
				seen := map[string]bool{}
				for _, e := range p.Containers[0].Env {
					if !known[e.Name] || seen[e.Name] {
						t.Errorf("%s sets %s, which is no setting, or set twice", named(example, p.owner), e.Name)
					}
					seen[e.Name] = true
					if secret.MatchString(e.Name) && (e.Value != "" || e.ValueFrom.SecretKeyRef.Name == "") {
						t.Errorf("%s has %s in plain text", named(example, p.owner), e.Name)
					}
				}
				for _, m := range p.Containers[0].VolumeMounts {
					if !m.ReadOnly || !slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
						t.Errorf("%s mounts %s, which it can change or has not", named(example, p.owner), m.Name)
					}
				}
			}
		})
	})

	t.Run("SelectorsFindWhatTheyMean", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, example string, made []runtime.Object) {
			for _, o := range of[*corev1.Service](made) {
				selects(t, named(example, o.Name), made, labels.SelectorFromSet(o.Spec.Selector), o.Spec.Ports[0].TargetPort.String())
			}
			for _, o := range of[*policyv1.PodDisruptionBudget](made) {
				selects(t, named(example, o.Name), made, selector(t, o.Spec.Selector), "")
			}
			for _, o := range of[*networkingv1.NetworkPolicy](made) {
				for _, rule := range o.Spec.Ingress {
					port := rule.Ports[0].Port.String()
					if strings.HasSuffix(o.Name, "-repair") && !strings.Contains(example, "production") {
						port = "" // a CronJob's pods listen nowhere
					}
					selects(t, named(example, o.Name), made, selector(t, &o.Spec.PodSelector), port)
				}
			}
			for _, o := range of[*appsv1.Deployment](made) {
				if !selector(t, o.Spec.Selector).Matches(labels.Set(o.Spec.Template.Labels)) {
					t.Errorf("%s does not know its own pods", named(example, o.Name))
				}
			}
			for _, o := range of[*autoscalingv2.HorizontalPodAutoscaler](made) {
				i := slices.IndexFunc(of[*appsv1.Deployment](made), func(d *appsv1.Deployment) bool { return d.Name == o.Spec.ScaleTargetRef.Name })
				if i < 0 || of[*appsv1.Deployment](made)[i].Spec.Replicas != nil {
					t.Errorf("%s scales nothing, or each upgrade sets it back", named(example, o.Name))
				}
			}
		})
	})

	t.Run("ProbesAskWhatIsThere", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, example string, made []runtime.Object) {
			for _, o := range of[*appsv1.Deployment](made) {
				c := o.Spec.Template.Spec.Containers[0]
				for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
					if probe == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != "admin" || probe.TimeoutSeconds < 3 { // /readyz takes 2 s
						t.Errorf("%s: the probe of %s is %s", named(example, o.Name), path, encoded(t, probe))
					}
				}
				admin := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "HOLDFAST_ADMIN_LISTEN" })
				i := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "admin" })
				if _, port, _ := strings.Cut(c.Env[admin].Value, ":"); port != encoded(t, c.Ports[i].ContainerPort) {
					t.Errorf("%s listens on %s and is asked on %d", named(example, o.Name), port, c.Ports[i].ContainerPort)
				}
				grace := *o.Spec.Template.Spec.TerminationGracePeriodSeconds
				if c.Lifecycle != nil {
					grace -= c.Lifecycle.PreStop.Sleep.Seconds
				}
				if grace < 30 { // all of a process's stop
					t.Errorf("%s is killed %d s after it was told to stop", named(example, o.Name), grace)
				}
			}
		})
	})

	t.Run("NodesCanBeDrained", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, example string, made []runtime.Object) {
			replicas := map[string]int32{}
			for _, o := range of[*appsv1.Deployment](made) {
				if o.Spec.Replicas != nil {
					replicas[o.Name] = *o.Spec.Replicas
				}
			}
			for _, o := range of[*policyv1.PodDisruptionBudget](made) {
				if least := o.Spec.MinAvailable; least != nil && least.IntValue() >= int(replicas[o.Name]) {
					t.Errorf("%s wants %s of %d: none may ever go", named(example, o.Name), least, replicas[o.Name])
				}
			}
		})
	})

	t.Run("NamesAreKubernetes", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, example string, made []runtime.Object) {
			for _, object := range made {
				o := object.(metav1.Object)
				for _, problem := range validation.IsDNS1123Label(o.GetName()) {
					t.Errorf("%s: %s", named(example, o.GetName()), problem)
				}
				for _, value := range o.GetLabels() {
					for _, problem := range validation.IsValidLabelValue(value) {
						t.Errorf("%s: %q: %s", named(example, o.GetName()), value, problem)
					}
				}
			}
		})
	})

	t.Run("MigrationComesFirst", func(t *testing.T) {
		t.Parallel()
		made, _ := objects(t, "")
		hook := of[*batchv1.Job](made)[0]
		if hook.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" || !slices.Equal(hook.Spec.Template.Spec.Containers[0].Args, []string{"migrate"}) {
			t.Errorf("the hook is %s", encoded(t, hook.Annotations))
		}
		if account := hook.Spec.Template.Spec.ServiceAccountName; account != "" {
			t.Errorf("it runs as %s, which the first installation has not made yet", account)
		}
	})
}

func selector(t *testing.T, s *metav1.LabelSelector) labels.Selector {
	t.Helper()
	made, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// selects fails the test when no pod, or the pods of several owners, are selected, or when they lack a port of that name.
func selects(t *testing.T, what string, made []runtime.Object, s labels.Selector, port string) {
	t.Helper()
	found := slices.DeleteFunc(pods(made), func(p pod) bool { return !s.Matches(labels.Set(p.Labels)) })
	switch {
	case len(found) != 1:
		t.Errorf("%s selects the pods of %d owners", what, len(found))
	case port != "" && !slices.ContainsFunc(found[0].Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port }):
		t.Errorf("%s wants port %q of %s", what, port, found[0].owner)
	}
}
