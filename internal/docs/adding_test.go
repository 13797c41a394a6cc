package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAddingAProvider holds the checklist for a new provider against the code: it lists each file
// outside of the provider's own package that names xAI, the provider that nothing else is named
// after.
func TestAddingAProvider(t *testing.T) {
	text, err := os.ReadFile("adding-a-provider.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	named := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{"bin", "internal/provider/xai", "internal/test", "internal/tool", "internal/simulate", "internal/store/storetest"}, name) || strings.HasPrefix(entry.Name(), ".") && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go":
			if !strings.HasSuffix(path, "_test.go") && namesXAI(t, path) {
				named[name] = true
			}
		case ".yaml":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if strings.Contains(string(text), "xai") {
				named[name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(named)), listed); diff != "" {
		t.Errorf("files in adding-a-provider.md (-in the code, +listed):\n%s", diff)
	}
}

// namesXAI reports whether a file's code names the provider: its constant, its package, or a text
// with its name. Comments do not count.
func namesXAI(t *testing.T, path string) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			found = found || n.Name == "XAI"
		case *ast.BasicLit:
			found = found || n.Kind == token.STRING && regexp.MustCompile(`(?i)\bxai\b`).MatchString(n.Value)
		}
		return !found
	})
	return found
}

// TestLinks follows every link from a document to a file of the repository.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, pattern := range []string{"*.md", ".github/*.md", "infra/*.md", "functions/*.md", "events/*.md", "internal/docs/*.md", "internal/docs/decisions/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range link.FindAllStringSubmatch(string(text), -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(name), match[1])); err != nil {
					t.Errorf("%s links to %s, which is not there", name, match[1])
				}
			}
		}
	}
}
