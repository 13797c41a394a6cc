package docs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
const root = "../.."

// listed is what `go list` says of a package of ours.
type listed struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Dir,GoFiles,Imports,Deps", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read what go list says: %v", err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	return all
}

// within reports whether a package is one of names below internal/, or below one.
func within(path string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		full := "holdfast/internal/" + name
		return path == full || strings.HasPrefix(path, full+"/")
	})
}

// floors are the folders of internal/ from the ground up. A package imports its own floor
// and those below it.
var floors = []string{
	"core",      // what decides: values in, values out
	"wire",      // the bytes of requests and answers; no account is decided
	"provider",  // each vendor's own
	"store",     // records, and the secrets in them
	"logging",   // the one door of log lines
	"transport", // requests on their way to providers
	"upkeep",    // what happens without a request: rounds, renewals
	"status",    // how the gateway stands, in one value
	"request",   // serving one request
	"aws",       // each edge to AWS
	"simulate",  // a stand-in for a provider, for demonstrations and tests
	"command",   // the operator's commands
	"test",      // what tests of several packages need
	"tool",      // programs for developers
	"docs", "e2e",
}

// floorOf is a package's place in floors; it is -1 for a package on no floor.
func floorOf(path string) int {
	rest, ours := strings.CutPrefix(path, "holdfast/internal/")
	if !ours {
		return -1
	}
	name, _, _ := strings.Cut(rest, "/")
	return slices.Index(floors, name)
}

var (
	// simulated is for demonstrations and tests.
	simulated = []string{"test", "tool", "e2e", "simulate", "store/memstore", "store/storetest"}
	// spoken is what several providers speak alike; each of their packages may know it, and it
	// knows none of theirs.
	spoken = []string{"provider/dialect", "provider/renewal", "provider/session"}
	// adapters are edges to one thing outside each, such as a database, a key service or a
	// platform. Whoever wires brings them together.
	adapters = []string{"aws/cloudwatch", "aws/datakey", "aws/functionurl", "aws/lambdahttp", "logging", "store/seal", "store/memstore", "store/sqlitestore", "store/dynamostore"}
	// inAWS know Amazon's packages; nobody else does.
	inAWS = []string{"aws", "store/dynamostore", "test/awstest", "test/deploytest", "test/functiontest"}
	// vendors are the packages of one provider each.
	vendors = []string{"provider/anthropic", "provider/openai", "provider/xai"}
)

// TestFloors holds that each package stands on a floor, that each floor has packages, and
// that no import goes up.
func TestFloors(t *testing.T) {
	stands := map[int]bool{}
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.ImportPath, "holdfast/internal/") {
			continue
		}
		floor := floorOf(p.ImportPath)
		if floor < 0 {
			t.Errorf("%s stands on no floor: put it into one of %s", p.ImportPath, strings.Join(floors, ", "))
			continue
		}
		stands[floor] = true
		for _, imported := range p.Imports {
			if up := floorOf(imported); up > floor {
				t.Errorf("%s imports %s, from a floor above its own", p.ImportPath, imported)
			}
		}
	}
	for i, name := range floors {
		if !stands[i] {
			t.Errorf("the floor %s has no package", name)
		}
	}
}

// TestDirection holds which other imports are forbidden, and why.
func TestDirection(t *testing.T) {
	for _, p := range packages(t) {
		ours := strings.HasPrefix(p.ImportPath, "holdfast/internal/")
		for _, imported := range p.Imports {
			for _, rule := range []struct {
				broken bool
				why    string
			}{
				{strings.HasPrefix(imported, "holdfast/functions/"), "functions only wire; nothing may need them"},
				{
					within(p.ImportPath, "core", "wire") && slices.Contains([]string{"net", "os", "os/exec", "database/sql", "log"}, imported),
					"what decides and what reads bytes has no input or output",
				},
				{
					within(p.ImportPath, "core", "wire") && imported == "net/http" && !within(p.ImportPath, "wire/limits", "wire/browser"), // which read headers
					"what decides and what reads bytes speaks to nobody",
				},
				{within(p.ImportPath, "provider") && slices.Contains([]string{"os", "os/exec", "database/sql"}, imported), "providers parse and render; they have no input or output"},
				{ours && within(imported, vendors...) && !within(p.ImportPath, append(simulated, append(vendors, "provider/all")...)...), "only the list of them knows which providers there are"},
				{ours && within(imported, "provider/all") && !within(p.ImportPath, simulated...), "programs take the list of providers and hand it on"},
				{
					within(p.ImportPath, "provider") && !within(p.ImportPath, "provider/all") && within(imported, vendors...) && !strings.HasPrefix(p.ImportPath+"/", imported+"/"),
					"one provider's package does not know another's",
				},
				{within(p.ImportPath, spoken...) && within(imported, vendors...), "what providers speak alike knows none of them"},
				{within(p.ImportPath, adapters...) && within(imported, adapters...), "adapters do not know each other"},
				{ours && within(imported, "aws/cloud") && !within(p.ImportPath, append(simulated, "aws/cloud")...), "only the wiring opens tables; everybody else gets a store and a box"},
				{ours && strings.HasPrefix(imported, "github.com/aws/") && !within(p.ImportPath, inAWS...), "whoever is not an edge to AWS knows nothing of it"},
				{within(p.ImportPath, "request", "transport", "upkeep") && within(imported, adapters...), "who serves gets its store, its box and its log from the wiring"},
				{!within(p.ImportPath, simulated...) && within(imported, simulated...) && !(within(p.ImportPath, "command") && within(imported, "simulate")), "what simulates is for demonstrations and tests"},
				{strings.HasPrefix(imported, "github.com/spf13/") && !within(p.ImportPath, "command"), "only the command line parses flags"},
				{strings.HasPrefix(imported, "modernc.org/") && !within(p.ImportPath, "store/sqlitestore"), "only the embedded store knows its database"},
			} {
				if rule.broken {
					t.Errorf("%s imports %s: %s", p.ImportPath, imported, rule.why)
				}
			}
		}
	}
	for _, name := range slices.Concat(simulated, spoken, adapters, inAWS, vendors) {
		if _, err := os.Stat(filepath.Join(root, "internal", name)); err != nil {
			t.Errorf("a rule names %s, which is not there", name)
		}
	}
}

// TestCoreDependsOnLittle looks at what the core needs in the end, not only directly.
func TestCoreDependsOnLittle(t *testing.T) {
	for _, p := range packages(t) {
		if !within(p.ImportPath, "core") {
			continue
		}
		for _, dep := range p.Deps {
			first, _, _ := strings.Cut(dep, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(dep, "golang.org/x/") && !strings.HasPrefix(dep, "vendor/") {
				t.Errorf("%s depends on %s: the core needs the standard library only", p.ImportPath, dep)
			}
			if dep == "database/sql" {
				t.Errorf("%s depends on %s: the core has no store", p.ImportPath, dep)
			}
		}
	}
}

// TestManuals asks for exactly one package comment in each package, of some length.
func TestManuals(t *testing.T) {
	for _, p := range packages(t) {
		var with []string
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc == nil {
				continue
			}
			with = append(with, name)
			text := f.Doc.Text()
			beginning := "Package " + p.Name + " "
			if p.Name == "main" {
				beginning = "Command "
			}
			if !strings.HasPrefix(text, beginning) || len(strings.Fields(text)) < 15 {
				t.Errorf("%s: the comment in %s is to begin with %q and be a manual: what the package decides, and what it never does", p.ImportPath, name, beginning)
			}
		}
		if len(p.GoFiles) > 0 && len(with) != 1 {
			t.Errorf("%s has package comments in %q; want exactly one", p.ImportPath, with)
		}
	}
}

// TestNames keeps out packages that are named by what they are made of.
func TestNames(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "models", "manager", "service", "misc"}, p.Name) {
			t.Errorf("%s: name a package by its subject", p.ImportPath)
		}
	}
}

// TestTop keeps the top of the repository as it is meant to be.
func TestTop(t *testing.T) {
	allowed := []string{
		"functions", "internal", "infra", "events", "testdata", "bin", // bin is built
		"template.yaml", "samconfig.toml", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "CHANGELOG.md",
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(allowed, name) && name != "coverage.out" {
			t.Errorf("%s does not belong at the top", name)
		}
	}
}

// TestDecisions numbers them from 1 without a gap, each number once, as the heading says.
func TestDecisions(t *testing.T) {
	entries, err := os.ReadDir("decisions")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		text, err := os.ReadFile(filepath.Join("decisions", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		number := fmt.Sprintf("%04d", i+1)
		if !strings.HasPrefix(e.Name(), number+"-") || !strings.HasPrefix(string(text), "# "+number+": ") {
			t.Errorf("decision %d is %s: want a name that begins %s- and a heading that begins # %s:", i+1, e.Name(), number, number)
		}
	}
}

// TestFilesOfOneSubject keeps files short enough to be about one thing.
func TestFilesOfOneSubject(t *testing.T) {
	const most = 600 // 400 is the aim
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(string(text), "\n"); lines > most {
				t.Errorf("%s/%s has %d lines, more than %d: split it by subject", p.ImportPath, name, lines, most)
			}
		}
	}
}
