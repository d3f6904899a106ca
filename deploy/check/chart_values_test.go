package check

import (
	"strings"
	"testing"
)

func TestChartValues(t *testing.T) {
	t.Parallel()

	t.Run("WrongOnesAreRefused", func(t *testing.T) {
		t.Parallel()
		for _, wrong := range []string{
			"workers: {replicas: 3}",
			"api: {replicas: 0}",
			"api: {replicas: two}",
			"api: {service: {port: 70000}}",
			"api: {minAvailable: half}",
			"worker: {maxUnavailable: 0}",
			"worker: {slots: 0}",
			"worker: {autoscaling: {enabled: yes please}}",
			"repair: {kind: DaemonSet}",
			"repair: {schedule: hourly}",
			"repair: {interval: often}",
			"image: {tag: 'with space'}",
			"image: {prefix: 'holdfast:1.0'}",
			"image: {digests: {api: sha256:abc}}",
			"database: {owner: {secret: ''}}",
			"database: {api: {url: 'postgres://a:b@c/d'}}",
			"database: {pooler: session}",
			"nats: {url: 'tls://user:password@nats:4222'}",
			"nats: {replicas: 2}",
			"models: {extractor: magic}",
			"models: {openai: {apiKey: secret}}",
			"settings: {HOLDFAST_OPENAI_API_KEY: secret}",
			"settings: {HOLDFAST_DATABASE_URL: secret}",
			"settings: {LOG_LEVEL: debug}",
			"settings: {HOLDFAST_RATE_LIMIT: 5}",
			"networkPolicy: {outside: {ports: []}}",
			"migrate: {deadlineSeconds: 1}",
		} {
			if _, err := render(t, wrong); err == nil || !strings.Contains(err.Error(), "schema") {
				t.Errorf("%s was taken: %v", wrong, err)
			}
		}
	})

	t.Run("ExamplesAreTaken", func(t *testing.T) {
		t.Parallel()
		for name, values := range examples(t) {
			if _, err := render(t, values); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
