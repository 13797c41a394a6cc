package e2e_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// stack is the deployment with its owner's side: accounts of all three providers at
// scripted upstreams, and a front through which every request to the Function URL goes.
type stack struct {
	*bench
	*functiontest.Deployment
	openai, xai *upstreamtest.Upstream
	// tansy is a Codex subscription, bracken and sedge are Grok's, in this order.
	tansy, bracken, sedge *upstreamtest.Account
	// admin is an admin client key, passing one that is revoked on the way.
	admin, passing string
}

// TestDeployed is the stack as an owner deploys it and lives with it, with the functions
// under their own roles, in an account that refuses what a role's policy does not name. Its
// parts go on from each other.
func TestDeployed(t *testing.T) {
	for _, name := range []string{"claude", "codex", "grok"} {
		tool(t, name)
	}
	s := &stack{Deployment: functiontest.Deploy(t)}
	part := func(name string, do func(*testing.T, *stack)) {
		t.Run(name, func(t *testing.T) {
			in := *s
			in.Deployment = s.In(t)
			if s.bench != nil {
				b := *s.bench
				b.t, in.bench = t, &b
			}
			do(t, &in)
			if s.bench != nil {
				s.secrets = in.secrets
			}
		})
	}
	part("Resources", resources)
	part("Nothing is configured yet", unconfigured)
	s.configure(t)
	part("Agents", agents)
	part("Environments", environments)
	part("Requests", requests)
	part("Lines of requests", requestLines)
	part("Poller", polled)
	part("Logs", func(t *testing.T, s *stack) {
		for _, function := range []string{"Gateway", "Poller"} {
			log := s.Log(function)
			s.quiet("the function "+function, log)
			if strings.Contains(log, "AccessDenied") || strings.Contains(log, `"level":"ERROR"`) {
				t.Errorf("the log of %s: got %s, want nothing denied, no errors", function, log)
			}
		}
	})
	part("Roles", roles)
	part("Without a statement", statements)
	part("Changed function", changed)
	part("All spent", allSpent)
	part("Login revoked", revoked)
	part("Alarms", scenarios)
	part("Schedule", scheduled) // late, since it waits for a minute's end otherwise
	part("A second region", func(t *testing.T, s *stack) {
		if said, _ := s.DeployElsewhere("eu-west-1"); !strings.Contains(said, "Successfully created/updated stack") {
			t.Errorf("got %s, want a stack of the same name beside the first", said)
		}
	})
	part("Deleted", deleted)
}

// configure does what an owner does after the first deployment.
func (s *stack) configure(t *testing.T) {
	t.Helper()
	s.bench = onTable(t, s.Table, s.Deployment.Owner())
	s.front.to(t, s.URL)
	s.openai, s.xai = upstreamtest.StartOpenAI(t), upstreamtest.StartXAI(t)
	ends := time.Now().Add(6 * time.Hour).Truncate(time.Second)
	add := func(up *upstreamtest.Upstream, provider, name string, n int) (a *upstreamtest.Account) {
		b := *s.bench
		b.up = up
		a = b.addLogin(provider, newLogin(provider, name, n, ends))
		s.secrets = b.secrets
		return a
	}
	s.tansy = add(s.openai, "openai", "tansy", 1)
	s.bracken, s.sedge = add(s.xai, "xai", "bracken", 1), add(s.xai, "xai", "sedge", 2)
	s.tansy.Always(upstreamtest.OpenAIGood(codexRoom()))
	s.admin = strings.TrimSpace(s.run(nil, "key", "create", "admin", "--admin").stdout)
	s.passing = strings.TrimSpace(s.run(nil, "key", "create", "passing").stdout)
	s.secrets = append(s.secrets, s.admin, s.passing)
}
