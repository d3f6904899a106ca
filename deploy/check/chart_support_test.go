package check

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const release, namespace = "memory", "apps"

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(root(t, "deploy", "helm", "holdfast"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render is what `helm template` prints for values given as YAML, one text a document; err is a refusal of the values.
func render(t *testing.T, values string) (documents []string, err error) {
	t.Helper()
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	c := loadChart(t)
	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), c, all)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for document := range strings.SplitSeq("\n"+text, "\n---\n") {
			if strings.TrimSpace(document) != "" {
				documents = append(documents, document)
			}
		}
	}
	slices.Sort(documents)
	return documents, nil
}

// monitor is what the chart writes of a ServiceMonitor, whose types are in no module of Kubernetes' own.
type monitor struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port, Path, Interval string
		} `json:"endpoints"`
	} `json:"spec"`
}

// objects decodes what a chart makes of values as a strict API server does: a member that the type doesn't have, or that
// is there twice, fails the test.
func objects(t *testing.T, values string) (known []runtime.Object, monitors []monitor) {
	t.Helper()
	documents, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, document := range documents {
		var m monitor
		if strings.Contains(document, "\nkind: ServiceMonitor\n") {
			if err := yaml.UnmarshalStrict([]byte(document), &m); err != nil {
				t.Errorf("%v in\n%s", err, document)
			}
			monitors = append(monitors, m)
			continue
		}
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Errorf("%v in\n%s", err, document)
			continue
		}
		known = append(known, object)
	}
	return known, monitors
}

// pod is a pod's template with who makes it.
type pod struct {
	owner string
	metav1.ObjectMeta
	corev1.PodSpec
}

func pods(objects []runtime.Object) []pod {
	var found []pod
	for _, object := range objects {
		switch o := object.(type) {
		case *appsv1.Deployment:
			found = append(found, pod{o.Name, o.Spec.Template.ObjectMeta, o.Spec.Template.Spec})
		case *batchv1.Job:
			found = append(found, pod{o.Name, o.Spec.Template.ObjectMeta, o.Spec.Template.Spec})
		case *batchv1.CronJob:
			template := o.Spec.JobTemplate.Spec.Template
			found = append(found, pod{o.Name, template.ObjectMeta, template.Spec})
		}
	}
	return found
}

func of[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, object := range objects {
		if is, ok := object.(T); ok {
			found = append(found, is)
		}
	}
	return found
}

// examples are the values that the chart is looked at with, by name; "" is the chart's own.
func examples(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(root(t, "deploy", "helm", "examples", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	all := map[string]string{"defaults": ""}
	for _, file := range files {
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = read(t, file)
	}
	return all
}

// each runs a check on what every example makes, with the example's name before what it says.
func each(t *testing.T, check func(t *testing.T, example string, made []runtime.Object)) {
	t.Helper()
	for name, values := range examples(t) {
		made, _ := objects(t, values)
		check(t, name, made)
	}
}

// named tells objects of one kind apart in messages.
func named(example, name string) string { return fmt.Sprintf("%s: %s", example, name) }

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(text))
}
