package gateway_test

import (
	"net/http"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/test/upstreamtest"
)

// foreign are the headers by which clients of each provider say for whom they call.
func foreign() http.Header {
	h := http.Header{}
	for _, name := range []string{
		"OpenAI-Organization", "OpenAI-Project", "ChatGPT-Account-ID", "X-OpenAI-Fedramp", "x-openai-account-routing-override",
		"anthropic-workspace-id", "anthropic-organization-id", "x-userid", "x-grok-user-id", "x-xai-token-auth",
	} {
		h.Set(name, "the client's")
	}
	return h
}

// TestScopeIsTheAccounts is field case whose-organization: what says for whom a request is
// goes out with the account that it belongs to alone, and a client's own never goes out,
// whichever provider it is meant for.
func TestScopeIsTheAccounts(t *testing.T) {
	for _, c := range []struct {
		name     string
		provider account.Provider
		kind     account.Kind
		ask      func(n int) ask
		scope    credential.Scope
		want     http.Header
	}{
		{"OpenAI key", account.OpenAI, account.Key, func(n int) ask { return chatAsk(n, "gpt-5.5") },
			credential.Scope{Organization: "org-1", Project: "proj_1"},
			http.Header{"Openai-Organization": {"org-1"}, "Openai-Project": {"proj_1"}}},
		{"Anthropic key", account.Anthropic, account.Key, func(n int) ask { return ask{session: session(n)} },
			credential.Scope{Workspace: "wrkspc_1"},
			http.Header{"Anthropic-Workspace-Id": {"wrkspc_1"}}},
		{"Anthropic login", account.Anthropic, account.Subscription, func(n int) ask { return ask{session: session(n)} },
			credential.Scope{Workspace: "wrkspc_1"},
			http.Header{"Anthropic-Workspace-Id": {"wrkspc_1"}}},
		{"xAI key", account.XAI, account.Key, func(n int) ask { return chatAsk(n, "grok-4.5") },
			credential.Scope{Organization: "org-1", Project: "proj_1", Workspace: "wrkspc_1"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.add(c.provider, c.kind, "hazel", "alder")
			if c.provider == account.Anthropic {
				b.account("hazel").Always(upstreamtest.Good(nil))
				b.account("alder").Always(upstreamtest.Good(nil))
			}
			cred := credential.Credential{Generation: 2, Scope: c.scope}
			if c.kind == account.Key {
				cred.Key = credential.NewSecret(secret("hazel"))
			} else {
				cred.Access = credential.NewSecret(secret("hazel"))
			}
			b.save(account.Account{ID: "acc-hazel"}, cred)
			for n, name := range []string{"hazel", "alder"} {
				b.prefer(name, "hazel", "alder")
				asked := c.ask(n)
				headers := foreign()
				for k, v := range asked.header {
					headers[k] = v
				}
				asked.header = headers
				if got := b.served(asked); got.account() != name {
					t.Fatalf("got %s, want %s", got.account(), name)
				}
				want := http.Header{}
				if name == "hazel" {
					want = c.want
				}
				sent := b.account(name).Requests()[0].Header
				for k := range foreign() {
					if sent.Get(k) != want.Get(k) {
						t.Errorf("%s: got %s %q, want %q", name, k, sent.Get(k), want.Get(k))
					}
				}
			}
		})
	}
}

// A credential is shown to no host but the one that it was given for: not the new one to the
// old host while the catalog in memory still names that, nor the old one to the new host.
func TestCredentialIsForItsHost(t *testing.T) {
	for _, beside := range []bool{false, true} {
		b := newBench(t, "marlow")
		if beside {
			b.addAccount("juniper", account.Key)
		}
		b.prefer("marlow")
		b.served(ask{session: session(1)})
		other := upstreamtest.Start(t)
		moved := other.Account("marlow", secret("marlow")+"-new")
		b.save(account.Account{ID: "acc-marlow"}, credential.Credential{
			Key: credential.NewSecret(secret("marlow") + "-new"), BaseURL: &other.URL, Generation: 2,
		})
		b.fold("marlow", func(s account.State) account.State { return s.LoggedIn(2) })
		sent := b.sent()
		switch r := b.do(ask{session: session(2)}); {
		case beside && (r.status != http.StatusOK || r.account() != "juniper"):
			t.Errorf("got %d from %s, want another account to serve", r.status, r.account())
		case !beside && (r.status != http.StatusServiceUnavailable || r.errorKind() != "busy" || r.header.Get("Retry-After") != "1"):
			t.Errorf("got %d %s, want 503 busy, and to hear when to try again", r.status, r.errorKind())
		case !beside && b.sent() != sent:
			t.Error("the old host was sent something")
		}
		if st := b.state("marlow"); st.Parked != nil || len(st.Blocks) != 0 {
			t.Errorf("got %+v, want nothing against the account", st)
		}
		b.pointAt("marlow", other.URL)
		if r := b.served(ask{session: session(1)}); r.account() != "marlow" || len(moved.Requests()) != 1 {
			t.Errorf("got %s, and %d requests at the new host, want marlow and 1", r.account(), len(moved.Requests()))
		}
	}
}
