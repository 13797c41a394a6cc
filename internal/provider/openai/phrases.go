package openai

import "net/http"

// lostCodes are the codes and types by which an account is out of money or out of access,
// with the names of their rules.
var lostCodes = map[string]string{
	"credit_balance_exhausted":          "credit-balance",
	"organization_spend_limit_exceeded": "spend-limit-organization",
	"project_spend_limit_exceeded":      "spend-limit-project",
	"organization_usage_limit_exceeded": "usage-limit-organization",
	"billing_hard_limit_reached":        "spend-limit",
	"billing_not_active":                "billing-not-active",
	"account_deactivated":               "disabled",
	"organization_deactivated":          "disabled",
	"deactivated_workspace":             "disabled",
}

// lost are the phrases for the same, where no code comes.
var lost = []struct{ phrase, rule string }{
	{"you exceeded your current quota", "insufficient-quota"},
	{"your account is not active, please check your billing", "billing-not-active"},
	{"your openai account has been deactivated", "disabled"},
}

// quota is the word that all refusals for the lack of money share, above their codes.
const quota = "insufficient_quota"

// funds is the rule by which the failure means that the account needs its owner; empty
// when it does not.
func (f failure) funds() string {
	for _, word := range []string{f.code, f.kind} {
		if name := lostCodes[word]; name != "" {
			return name
		}
	}
	if f.is(quota) {
		return "insufficient-quota"
	}
	for _, l := range lost {
		if f.says(l.phrase) {
			return l.rule
		}
	}
	return ""
}

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

// overloaded reports whether the provider says that the trouble is its own.
func (f failure) overloaded() bool {
	return f.is("server_is_overloaded", "service_unavailable_error", "server_error") || f.says("selected model is at capacity")
}

// encrypted reports whether the request carried what was encrypted for another account.
func (f failure) encrypted() bool {
	return f.is("invalid_encrypted_content") || f.says("the encrypted content", "encrypted function output content")
}

// elsewhere reports whether the client's own choice of an organization or a project does
// not fit the credential, which may well be good.
func (f failure) elsewhere() bool {
	return f.is("mismatched_organization", "mismatched_project", "invalid_organization", "invalid_project")
}

// revoked are the codes by which a login's token has ended, under whatever status.
var revoked = []string{"token_revoked", "token_invalidated", "token_expired"}

// statusIn is the status that an error within a stream would have had outside of one. An
// unknown one is the server's trouble: the request had been accepted.
func (f failure) statusIn() int {
	switch {
	case f.status != 0:
		return f.status
	case f.is("rate_limit_exceeded", "slow_down", "rate_limit_error", "requests", "tokens"), f.is(spentWords...):
		return http.StatusTooManyRequests
	case f.is("invalid_api_key", "authentication_error"), f.is(revoked...):
		return http.StatusUnauthorized
	case f.is("permission_error"):
		return http.StatusForbidden
	case f.encrypted(), clientCodes[f.code], f.is("invalid_request_error"):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

// clientCodes are codes within a stream that are about what the client asked for.
var clientCodes = map[string]bool{
	"context_length_exceeded":        true,
	"cyber_policy":                   true,
	"bio_policy":                     true,
	"invalid_prompt":                 true,
	"previous_response_not_found":    true,
	"invalid_image":                  true,
	"invalid_image_format":           true,
	"invalid_image_mode":             true,
	"invalid_image_url":              true,
	"invalid_base64_image":           true,
	"image_content_policy_violation": true,
	"image_file_not_found":           true,
	"image_file_too_large":           true,
	"image_parse_error":              true,
	"image_too_large":                true,
	"image_too_small":                true,
	"empty_image_file":               true,
	"failed_to_download_image":       true,
	"unsupported_image_media_type":   true,
}
