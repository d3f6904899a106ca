package repair_test

import (
	"os"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }
