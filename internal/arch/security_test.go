package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatModelNamesTestsThatExist holds docs/security.md to what it says of who shows what.
func TestThreatModelNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 20 {
		t.Fatalf("only %d tests are named", len(named))
	}
	var all strings.Builder
	err = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range named {
		if !strings.Contains(all.String(), "func "+name[1]+"(") {
			t.Errorf("there is no %s", name[1])
		}
	}
}
