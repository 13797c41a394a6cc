package docs_test

import (
	"fmt"
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

// caseRow is a row of field-cases.md: number, case, what must hold, the tests that hold it.
var caseRow = regexp.MustCompile(`(?m)^\| (\d+) \| ([a-z0-9'-]+) \| ([^|]*) \| ([^|]*) \|$`)

// namedCase is a case as a comment on a test names it.
var namedCase = regexp.MustCompile(`field case ([a-z0-9'-]*[a-z0-9])`)

// slugWord is anything that could be the name of a case: words joined by hyphens.
var slugWord = regexp.MustCompile(`[a-z0-9']+(?:-[a-z0-9']+)*`)

// TestFieldCases holds the table of field cases against the tests: a test holds a case that
// its comment, or a row within it, names. Each case has a test, and each name is a case.
func TestFieldCases(t *testing.T) {
	text, err := os.ReadFile("field-cases.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := caseRow.FindAllStringSubmatch(string(text), -1)
	if len(rows) == 0 {
		t.Fatal("field-cases.md has no rows")
	}
	holds := map[string]map[string]bool{}
	for _, row := range rows {
		if holds[row[2]] != nil {
			t.Errorf("field-cases.md has two rows of %s", row[2])
		}
		holds[row[2]] = map[string]bool{}
	}
	for name, source := range testSources(t) {
		for _, match := range namedCase.FindAllStringSubmatch(source, -1) {
			if holds[match[1]] == nil {
				t.Errorf("%s names the field case %q, which field-cases.md does not list", name, match[1])
				continue
			}
			holds[match[1]][name] = true
		}
		for _, word := range slugWord.FindAllString(source, -1) {
			if tests := holds[word]; tests != nil && strings.Contains(word, "-") {
				tests[name] = true // a name of one word counts in a comment alone
			}
		}
	}
	got, want := "", ""
	for i, row := range rows {
		tests := slices.Sorted(maps.Keys(holds[row[2]]))
		if len(tests) == 0 {
			t.Errorf("no test holds the field case %s", row[2])
		}
		got += row[0] + "\n"
		want += fmt.Sprintf("| %d | %s | %s | %s |\n", i+1, row[2], row[3], strings.Join(tests, ", "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows of field-cases.md (-want +got):\n%s\nThe rows are to read:\n%s", diff, want)
	}
}

// testSources returns the source of each test, its comment included, by package and name.
// A Fuzz function is a test too.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "cases_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(filepath.Join(root, "internal"), filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = strings.TrimPrefix(filepath.ToSlash(folder), "../")
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok || function.Recv != nil || !regexp.MustCompile(`^(Test|Fuzz)`).MatchString(function.Name.Name) {
				continue
			}
			from := function.Pos()
			if function.Doc != nil {
				from = function.Doc.Pos()
			}
			source := string(text[files.Position(from).Offset:files.Position(function.End()).Offset])
			// A name may stand on the next line of a comment.
			sources[folder+"."+function.Name.Name] = regexp.MustCompile(`\n\s*// ?`).ReplaceAllString(source, " ")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}
