// Package check compares the manifests with the types of the Kubernetes API, strictly: an
// unknown or misplaced field is an error. It is a separate module, so that the program does
// not depend on Kubernetes.
package check

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// objects returns all objects of the manifests, by kind and name.
func objects(t *testing.T) map[string]any {
	t.Helper()
	files, err := filepath.Glob("../*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	guard, err := filepath.Glob("../guard/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return read(t, append(files, guard...)...)
}

// read returns the objects of files.
func read(t *testing.T, files ...string) map[string]any {
	t.Helper()
	kinds := map[string]func() any{
		"Namespace": func() any { return &core.Namespace{} }, "Service": func() any { return &core.Service{} },
		"StatefulSet": func() any { return &apps.StatefulSet{} }, "Deployment": func() any { return &apps.Deployment{} },
		"PodDisruptionBudget": func() any { return &policy.PodDisruptionBudget{} }, "ConfigMap": func() any { return &core.ConfigMap{} }, "Secret": func() any { return &core.Secret{} },
		"NetworkPolicy":  func() any { return &networking.NetworkPolicy{} },
		"ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} }, "PrometheusRule": func() any { return &monitoring.PrometheusRule{} },
	}
	all := map[string]any{}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range bytes.Split(text, []byte("\n---\n")) {
			var head struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Metadata   struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal(doc, &head); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			make := kinds[head.Kind]
			if make == nil {
				t.Errorf("%s: nothing is known of the kind %q", file, head.Kind)
				continue
			}
			o := make()
			if err := yaml.UnmarshalStrict(doc, o); err != nil {
				t.Errorf("%s: %s %s: %v", file, head.Kind, head.Metadata.Name, err)
			}
			all[head.Kind+" "+head.Metadata.Name] = o
		}
	}
	return all
}

func TestManifests(t *testing.T) {
	all := objects(t)
	masters := all["StatefulSet redis"].(*apps.StatefulSet)
	args := masters.Spec.Template.Spec.Containers[0].Args
	for _, pair := range [][2]string{{"--min-replicas-to-write", "2147483647"}, {"--min-replicas-max-lag", "10"}, {"--maxmemory-policy", "noeviction"}} {
		if i := slices.Index(args, pair[0]); i < 0 || args[i+1] != pair[1] {
			t.Errorf("a master does not start with %s %s: %q", pair[0], pair[1], args)
		}
	}
	guard := all["Deployment redlock-guard"].(*apps.Deployment)
	if *guard.Spec.Replicas != 2 {
		t.Errorf("%d guards", *guard.Spec.Replicas)
	}
	for name, selected := range map[string]map[string]string{"redis": masters.Spec.Template.Labels, "redlock-guard": guard.Spec.Template.Labels} {
		for _, selector := range []map[string]string{
			all["Service "+name].(*core.Service).Spec.Selector,
			all["PodDisruptionBudget "+name].(*policy.PodDisruptionBudget).Spec.Selector.MatchLabels,
			all["NetworkPolicy "+name].(*networking.NetworkPolicy).Spec.PodSelector.MatchLabels,
		} {
			if !reflect.DeepEqual(selector, selected) {
				t.Errorf("%s: %v selects no pod with %v", name, selector, selected)
			}
		}
	}
	for _, o := range []core.PodSpec{masters.Spec.Template.Spec, guard.Spec.Template.Spec} {
		c := o.Containers[0]
		if !*o.SecurityContext.RunAsNonRoot || !*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation || !slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL") {
			t.Errorf("%s may do more than it needs", c.Name)
		}
	}
}

// The rules for the Prometheus operator equal those in deploy/prometheus.
func TestRulesAreTheSame(t *testing.T) {
	text, err := os.ReadFile("../../prometheus/redlockctl.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var want monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(text, &want); err != nil {
		t.Fatal(err)
	}
	got := objects(t)["PrometheusRule redlockctl"].(*monitoring.PrometheusRule).Spec
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	if !bytes.Equal(a, b) {
		t.Error("monitoring.yaml has other rules than deploy/prometheus/redlockctl.rules.yml: copy them, indented by two")
	}
}

// The output of "redlockctl init --kubernetes", built by kustomize. A test of cli/adopt
// keeps the file up to date.
func TestInit(t *testing.T) {
	all := read(t, "testdata/init.yaml")
	guard := all["Deployment redlock-guard"].(*apps.Deployment).Spec.Template.Spec
	config := all["ConfigMap "+guard.Volumes[0].ConfigMap.Name].(*core.ConfigMap)
	if config.Data["config.toml"] == "" {
		t.Error("the guard has no configuration")
	}
	for _, env := range guard.Containers[0].Env {
		if ref := env.ValueFrom; ref != nil && ref.SecretKeyRef != nil && len(all["Secret "+ref.SecretKeyRef.Name].(*core.Secret).Data[ref.SecretKeyRef.Key]) == 0 {
			t.Errorf("%s is in no secret", env.Name)
		}
	}
	for _, kind := range []string{"PodDisruptionBudget redlock-guard", "NetworkPolicy redlock-guard", "ServiceMonitor redlock-guard", "PrometheusRule redlockctl"} {
		if all[kind] == nil {
			t.Errorf("there is no %s", kind)
		}
	}
}
