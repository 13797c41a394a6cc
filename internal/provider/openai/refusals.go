package openai

import (
	"net/http"
	"strings"

	"holdfast/internal/core/account"
)

// row is one refusal that is known: what it looks like and what it is about. A field that
// is empty matches anything; of several rows the first that matches counts.
type row struct {
	status int
	// word is error.code or error.type: the same word comes as the one or as the other.
	word string
	// phrase begins the message, part is somewhere in it; both in lower case.
	phrase, part string

	kind account.RejectionKind
	// rule names the row in logs, and for the owner.
	rule string
	// of is what an Access refusal is of.
	of subject
}

// subject is what a credential may lack while it is good for everything else.
type subject int

const (
	// theModel is the one that was asked for.
	theModel subject = iota
	theTier
	theScope
	// theAddress, theRegion and theOrganization are of all requests.
	theAddress
	theRegion
	theOrganization
)

// refusals are the published and the known refusals of the API and of the plans' backend, by
// what they are about: the money, the credential, what the credential may do, the provider,
// the request. Rate limits and a plan's allowance are not here: what these mean, headers
// decide (see judge). Sources, all as of 2026-11-30: the error codes guide of the API's
// documentation; the enum of codes in the official SDKs (ResponseError); help article
// 5955604 on billing; refusals that users of the API and of Codex have published.
var refusals = []row{
	// The provider's own trouble.
	{word: "server_is_overloaded", kind: account.Overload, rule: "overload"},
	{word: "service_unavailable_error", kind: account.Overload, rule: "overload"},
	{word: "server_error", kind: account.Overload, rule: "overload"},
	{word: "vector_store_timeout", kind: account.Overload, rule: "overload"},
	{phrase: "selected model is at capacity", kind: account.Overload, rule: "overload"},

	// The money, and an account that is gone.
	{word: "credit_balance_exhausted", kind: account.Funds, rule: "credit-balance"},
	{word: "organization_spend_limit_exceeded", kind: account.Funds, rule: "spend-limit-organization"},
	{word: "project_spend_limit_exceeded", kind: account.Funds, rule: "spend-limit-project"},
	{word: "organization_usage_limit_exceeded", kind: account.Funds, rule: "usage-limit-organization"},
	{word: "billing_hard_limit_reached", kind: account.Funds, rule: "spend-limit"},
	{word: "billing_not_active", kind: account.Funds, rule: "billing-not-active"},
	{word: "account_deactivated", kind: account.Funds, rule: "disabled"},
	{word: "organization_deactivated", kind: account.Funds, rule: "disabled"},
	{word: "deactivated_workspace", kind: account.Funds, rule: "disabled"},
	{word: "access_terminated", kind: account.Funds, rule: "disabled"},
	{word: quota, kind: account.Funds, rule: "insufficient-quota"},
	{phrase: "you exceeded your current quota", kind: account.Funds, rule: "insufficient-quota"},
	{phrase: "your account is not active, please check your billing", kind: account.Funds, rule: "billing-not-active"},
	{phrase: "your openai account has been deactivated", kind: account.Funds, rule: "disabled"},
	{phrase: "your access was terminated due to violation of our policies", kind: account.Funds, rule: "disabled"},

	// What was encrypted for another account; walking on would end the same everywhere.
	{word: "invalid_encrypted_content", kind: account.ClientFault, rule: account.WhyEncrypted},
	{phrase: "the encrypted content", kind: account.ClientFault, rule: account.WhyEncrypted},
	{phrase: "encrypted function output content", kind: account.ClientFault, rule: account.WhyEncrypted},

	// Where requests come from and go to. A country is the same for every account.
	{word: "unsupported_country_region_territory", kind: account.ClientFault, rule: "country"},
	{word: "incorrect_hostname", kind: account.Access, rule: "region", of: theRegion},
	{phrase: "attempted to access resource with incorrect regional hostname", kind: account.Access, rule: "region", of: theRegion},
	{word: "ip_not_authorized", kind: account.Access, rule: "address", of: theAddress},
	{status: http.StatusUnauthorized, part: "ip not authorized", kind: account.Access, rule: "address", of: theAddress},
	{status: http.StatusUnauthorized, part: "ip address is not authorized", kind: account.Access, rule: "address", of: theAddress},

	// The organization or project that goes out with the account, and no client's.
	{word: "mismatched_organization", kind: account.Access, rule: "organization", of: theOrganization},
	{word: "mismatched_project", kind: account.Access, rule: "organization", of: theOrganization},
	{word: "invalid_organization", kind: account.Access, rule: "organization", of: theOrganization},
	{word: "invalid_project", kind: account.Access, rule: "organization", of: theOrganization},

	// What this key, project or organization may not do.
	{phrase: "you have insufficient permissions for this operation", kind: account.Access, rule: "scope", of: theScope},
	{word: "missing_scope", kind: account.Access, rule: "scope", of: theScope},
	{word: "insufficient_permissions", kind: account.Access, rule: "scope", of: theScope},
	{phrase: "your organization must be verified", kind: account.Access, rule: account.WhyUnverified},
	{phrase: "invalid service_tier argument", part: "not allowed", kind: account.Access, rule: "tier", of: theTier},
	{word: "model_not_found", kind: account.Access, rule: "model-access"},
	{phrase: "project ", part: "does not have access to model", kind: account.Access, rule: "model-access"},
	{phrase: "you are not allowed to sample from this model", kind: account.Access, rule: "model-access"},
	{phrase: "model not found", kind: account.Access, rule: "model-access"}, // the plans' backend
	{phrase: "the '", part: "model is not supported when using codex with a chatgpt account", kind: account.Access, rule: "model-not-in-plan"},

	// The credential.
	{word: "token_revoked", kind: account.BadCredential, rule: "login-ended"},
	{word: "token_invalidated", kind: account.BadCredential, rule: "login-ended"},
	{word: "token_expired", kind: account.BadCredential, rule: "login-ended"},
	{word: "invalid_api_key", kind: account.BadCredential, rule: "invalid-key"},
	{status: http.StatusUnauthorized, phrase: "you must be a member of an organization", kind: account.BadCredential, rule: "no-organization"},
	{status: http.StatusUnauthorized, kind: account.BadCredential, rule: "unauthorized"},
	{word: "authentication_error", kind: account.BadCredential, rule: "unauthorized"},

	// The request: what the client asked for, or what it sent.
	{word: "context_length_exceeded", kind: account.ClientFault, rule: "client"},
	{word: "string_above_max_length", kind: account.ClientFault, rule: "client"},
	{word: "cyber_policy", kind: account.ClientFault, rule: "client"},
	{word: "bio_policy", kind: account.ClientFault, rule: "client"},
	{word: "content_policy_violation", kind: account.ClientFault, rule: "client"},
	{word: "moderation_blocked", kind: account.ClientFault, rule: "client"},
	{word: "invalid_prompt", kind: account.ClientFault, rule: "client"},
	{word: "previous_response_not_found", kind: account.ClientFault, rule: "client"},
	{word: "unsupported_parameter", kind: account.ClientFault, rule: "client"},
	{word: "unsupported_value", kind: account.ClientFault, rule: "client"},
	{word: "unknown_parameter", kind: account.ClientFault, rule: "client"},
	{word: "missing_required_parameter", kind: account.ClientFault, rule: "client"},
	{word: "invalid_value", kind: account.ClientFault, rule: "client"},
	{word: "invalid_type", kind: account.ClientFault, rule: "client"},
	{word: "invalid_image", kind: account.ClientFault, rule: "client"},
	{word: "invalid_image_format", kind: account.ClientFault, rule: "client"},
	{word: "invalid_image_mode", kind: account.ClientFault, rule: "client"},
	{word: "invalid_image_url", kind: account.ClientFault, rule: "client"},
	{word: "invalid_base64_image", kind: account.ClientFault, rule: "client"},
	{word: "image_content_policy_violation", kind: account.ClientFault, rule: "client"},
	{word: "image_file_not_found", kind: account.ClientFault, rule: "client"},
	{word: "image_file_too_large", kind: account.ClientFault, rule: "client"},
	{word: "image_parse_error", kind: account.ClientFault, rule: "client"},
	{word: "image_too_large", kind: account.ClientFault, rule: "client"},
	{word: "image_too_small", kind: account.ClientFault, rule: "client"},
	{word: "empty_image_file", kind: account.ClientFault, rule: "client"},
	{word: "failed_to_download_image", kind: account.ClientFault, rule: "client"},
	{word: "unsupported_image_media_type", kind: account.ClientFault, rule: "client"},
}

// matches reports whether a failure under a status is the row's.
func (r row) matches(status int, f failure) bool {
	return (r.status == 0 || r.status == status) && (r.word == "" || f.is(r.word)) &&
		strings.HasPrefix(f.message, r.phrase) && strings.Contains(f.message, r.part)
}

// known is the row of a failure under a status; false where none exists.
func (f failure) known(status int) (row, bool) {
	for _, r := range refusals {
		if r.matches(status, f) {
			return r, true
		}
	}
	return row{}, false
}

// means is the rejection that the row is for a request.
func (c *refused) means(r row) account.Rejection {
	x := rule(r.kind, r.rule)
	if r.kind != account.Access {
		return x
	}
	switch r.of {
	case theModel: // the request's
	case theTier:
		x.Tier = c.Request.Tier
	case theScope:
		x.Feature = rightOf(c.Request)
	case theAddress:
		x.Feature = account.FeatureAddress
	case theRegion:
		x.Feature = account.FeatureRegion
	case theOrganization:
		x.Feature = account.FeatureOrganization
	}
	return x
}

// quota is the word that all refusals for the lack of money share, above their codes.
const quota = "insufficient_quota"

// spentWords are the codes and types by which a plan's allowance is spent until its reset.
// The second is that of programs which were let in by "Sign in with ChatGPT".
var spentWords = []string{usageLimitReached, "subscription_sharing_usage_limit_exceeded"}

const usageLimitReached = "usage_limit_reached"

// reachedTypes are the values of X-Codex-Rate-Limit-Reached-Type that name a limit which
// the workspace's owner set, or credits that the owner must buy, with their rules.
var reachedTypes = map[string]string{
	"workspace_owner_credits_depleted":     "credits-depleted",
	"workspace_member_credits_depleted":    "credits-depleted",
	"workspace_owner_usage_limit_reached":  "workspace-limit",
	"workspace_member_usage_limit_reached": "workspace-limit",
}

// limitWords are the codes and types of rate limits.
var limitWords = []string{"rate_limit_exceeded", slowDown, "rate_limit_error", "requests", "tokens", unavailable}

const (
	slowDown = "slow_down"
	// unavailable is how a tier of low priority says that it has no room for now.
	unavailable = "resource_unavailable"
)

// statusIn is the status that an error within a stream would have had outside of one. An
// unknown one is the server's trouble: the request had been accepted.
func (f failure) statusIn() int {
	if f.status != 0 {
		return f.status
	}
	r, known := f.known(0)
	switch {
	case f.is(limitWords...), f.is(spentWords...):
		return http.StatusTooManyRequests
	case known && r.kind == account.BadCredential:
		return http.StatusUnauthorized
	case f.is("permission_error"), known && r.kind == account.Access:
		return http.StatusForbidden
	case known && r.kind == account.ClientFault, f.is("invalid_request_error"):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}
