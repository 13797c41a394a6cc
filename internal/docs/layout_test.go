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

var (
	// core decides: values in, values out.
	core = []string{
		"account", "alarm", "alarmstate", "body", "catalog", "checkup", "claims", "clientkey", "conversation", "cost", "credential", "credentialfile", "event", "forecast",
		"limits", "metric", "owner", "pick", "pin", "placement", "route", "serving", "sse", "usage",
	}
	// edges speak to the outside.
	edges = []string{
		"apicall", "cloud", "cloudwatch", "command", "datakey", "forward", "functionurl", "gateway", "lambdahttp", "logging", "poll", "refresh", "seal",
		"store", "vault",
		"awstest", "bench", "bill", "deploytest", "e2e", "functiontest", "issuertest", "logtest", "simulate", "upstreamtest",
	}
	// adapters are edges to one thing outside each, such as a database, a key service or a
	// platform. Whoever wires brings them together.
	adapters = []string{"cloudwatch", "datakey", "functionurl", "lambdahttp", "logging", "seal", "store/memstore", "store/sqlitestore", "store/dynamostore"}
	// simulated is for demonstrations and tests.
	simulated = []string{
		"alarmstate", "awstest", "bench", "bill", "deploytest", "e2e", "functiontest", "issuertest", "logtest", "simulate", "store/memstore", "store/storetest",
		"upstreamtest",
	}
	// spoken is what several providers speak alike; each of their packages may know it, and it
	// knows none of theirs.
	spoken = []string{"provider/dialect", "provider/renewal", "provider/session"}
	// inAWS know Amazon's packages; nobody else does.
	inAWS = []string{"awstest", "cloud", "cloudwatch", "datakey", "deploytest", "functiontest", "functionurl", "lambdahttp", "store/dynamostore"}
)

// TestDirection holds which imports are forbidden, and why.
func TestDirection(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			for _, rule := range []struct {
				broken bool
				why    string
			}{
				{strings.HasPrefix(imported, "holdfast/functions/"), "functions only wire; nothing may need them"},
				{within(p.ImportPath, core...) && within(imported, edges...), "the core decides; it reaches nothing outside"},
				{
					within(p.ImportPath, core...) && slices.Contains([]string{"net", "os", "os/exec", "database/sql", "log"}, imported),
					"the core has no input or output",
				},
				{
					within(p.ImportPath, core...) && imported == "net/http" && !within(p.ImportPath, "limits"), // which reads headers
					"the core has no input or output",
				},
				{within(p.ImportPath, "provider") && within(imported, edges...), "providers parse and render; they do no I/O"},
				{
					within(imported, "provider") && imported != "holdfast/internal/provider" && strings.HasPrefix(p.ImportPath, "holdfast/internal/") && !within(p.ImportPath, append(simulated, "provider")...),
					"only the wiring knows which providers there are",
				},
				{
					within(p.ImportPath, "provider") && within(imported, "provider") && imported != "holdfast/internal/provider" && !within(imported, spoken...) &&
						!strings.HasPrefix(imported+"/", p.ImportPath+"/") && !strings.HasPrefix(p.ImportPath+"/", imported+"/"),
					"one provider's package does not know another's",
				},
				{within(p.ImportPath, adapters...) && within(imported, adapters...), "adapters do not know each other"},
				{
					within(imported, "cloud") && strings.HasPrefix(p.ImportPath, "holdfast/internal/") && !within(p.ImportPath, append(simulated, "cloud")...),
					"only the wiring opens tables; everybody else gets a store and a box",
				},
				{
					strings.HasPrefix(imported, "github.com/aws/") && strings.HasPrefix(p.ImportPath, "holdfast/internal/") && !within(p.ImportPath, inAWS...),
					"whoever is not an edge to AWS knows nothing of it",
				},
				{within(p.ImportPath, "store") && within(imported, "gateway", "forward", "command", "vault", "seal"), "the store serves; it does not know by whom it is used"},
				{within(p.ImportPath, "gateway", "forward", "refresh", "apicall") && (within(imported, "command") || within(imported, adapters...)), "who serves gets its store, its box and its log from the wiring"},
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
}

// TestCoreDependsOnLittle looks at what the core needs in the end, not only directly.
func TestCoreDependsOnLittle(t *testing.T) {
	for _, p := range packages(t) {
		if !within(p.ImportPath, core...) {
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

// TestLinterKnowsTheCore keeps the linter's lists of the core the same as ours.
func TestLinterKnowsTheCore(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	_, clockless, _ := strings.Cut(string(text), "path-except: internal/(")
	clockless, _, _ = strings.Cut(clockless, ")/")
	for _, name := range core {
		if !strings.Contains(string(text), `"**/internal/`+name+`/*.go"`) && name != "limits" { // which reads headers
			t.Errorf("depguard does not know that %s is of the core", name)
		}
		if !slices.Contains(strings.Split(clockless, "|"), name) {
			t.Errorf("forbidigo does not know that %s is of the core", name)
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
