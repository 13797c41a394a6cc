package anthropic

import (
	"net/http"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/wire/limits"
)

// row is one refusal that is known: what it looks like and what it is about. A field that
// is empty matches anything; of several rows the first that matches counts.
type row struct {
	status int
	// errorType is error.type, code is error.details.error_code.
	errorType, code string
	// phrase begins the message, part is somewhere in it; both in lower case.
	phrase, part string

	kind account.RejectionKind
	// rule names the row in logs, and for the owner.
	rule string
	// of is what an Entitlement or Access refusal is of.
	of subject
}

// subject is what a credential may lack while it is good for everything else.
type subject int

const (
	// theModel is the one that was asked for.
	theModel subject = iota
	// theFeature is the one that a demand for credits names; theOwnFeature the one that most
	// likely was the reason when none is named.
	theFeature
	theOwnFeature
	theLongContext
	theThirdParty
	theKeyPath
	// theWorkspace is that which goes out with the account.
	theWorkspace
)

// refusals are the published and the known refusals, by what they are about. Sources, all as
// of 2026-11-30: the errors page of the API's documentation and that of Claude Code, the
// error types of the official SDKs, and refusals that users have published. A window's
// refusal is not here: headers show it (see spent). Many come under several statuses: no
// money as 400 and 429, a disabled organization as 400, 401 and 403.
var refusals = []row{
	// The provider's own trouble.
	{errorType: "overloaded_error", kind: account.Overload, rule: "overload"},
	{status: http.StatusInternalServerError, kind: account.Overload, rule: "overload"},
	{status: http.StatusGatewayTimeout, kind: account.Overload, rule: "overload"},

	// The money, and access that is lost.
	{code: "enforced_spend_limit_reached", kind: account.Funds, rule: "spend-cap"},
	{code: "oauth_org_not_allowed", kind: account.Funds, rule: "no-access"},
	{phrase: "you have reached your api usage limits", kind: account.Funds, rule: "spend-cap"}, // the tier's, until next month
	{phrase: "you have reached your specified", kind: account.Funds, rule: "spend-limit"},      // the owner's own, organization or workspace
	{phrase: "your credit balance is too low", kind: account.Funds, rule: "credit-balance"},    // prepaid
	{phrase: "this organization has been disabled", kind: account.Funds, rule: "disabled"},
	{phrase: "your organization has been disabled", kind: account.Funds, rule: "disabled"},
	{phrase: "your account has been disabled", kind: account.Funds, rule: "disabled"},
	{phrase: "oauth token has been revoked", kind: account.Funds, rule: "login-revoked"},              // a refresh does not help
	{phrase: "oauth authentication is currently not allowed", kind: account.Funds, rule: "no-access"}, // the organization's policy
	{phrase: "account is no longer a member of the org", kind: account.Funds, rule: "no-access"},
	{phrase: "your account does not have access to claude", kind: account.Funds, rule: "no-access"},
	{errorType: "billing_error", kind: account.Funds, rule: "payment-required"},
	{status: http.StatusPaymentRequired, kind: account.Funds, rule: "payment-required"},

	// The right to a feature. The plan's windows have no part in it, whatever the headers
	// beside it say.
	{phrase: "the long context beta is not yet available", kind: account.Entitlement, rule: "long-context", of: theLongContext},
	{phrase: "this authentication style is incompatible with the long context", kind: account.Entitlement, rule: "long-context", of: theLongContext},
	{code: "credits_required", kind: account.Entitlement, rule: "credits-required", of: theFeature},
	{phrase: "usage credits are required", kind: account.Entitlement, rule: "credits-required", of: theFeature},
	{phrase: "extra usage is required", kind: account.Entitlement, rule: "credits-required", of: theFeature},

	// What this key, login or workspace may not do.
	{phrase: "oauth authentication is currently not supported", status: http.StatusUnauthorized, kind: account.Entitlement, rule: "path-needs-key", of: theKeyPath}, // the flag that logins need was there (Authorize)
	{part: "anthropic-workspace-id", status: http.StatusBadRequest, kind: account.Access, rule: "workspace", of: theWorkspace},
	{part: "anthropic-workspace-id", status: http.StatusForbidden, kind: account.Access, rule: "workspace", of: theWorkspace},
	{part: "anthropic-workspace-id", status: http.StatusNotFound, kind: account.Access, rule: "workspace", of: theWorkspace},
	{code: "oauth_scope_insufficient", kind: account.Access, rule: "scope"},
	{phrase: "oauth token does not meet scope requirement", kind: account.Access, rule: "scope"},
	{errorType: "not_found_error", phrase: "model:", kind: account.Access, rule: "model-access"},

	// The credential.
	{status: http.StatusUnauthorized, kind: account.BadCredential, rule: "unauthorized"},
	{status: http.StatusForbidden, code: "token_expired", kind: account.BadCredential, rule: "token-expired"},
	{status: http.StatusForbidden, errorType: "authentication_error", kind: account.BadCredential, rule: "token-expired"},
	{status: http.StatusForbidden, phrase: "oauth token has expired", kind: account.BadCredential, rule: "token-expired"},

	// The right to the thing that was asked for, in general; a block at the edge, by country
	// or network, has a type of its own.
	{status: http.StatusForbidden, errorType: "permission_error", kind: account.Access, rule: "forbidden"},
	{status: http.StatusForbidden, kind: account.ClientFault, rule: "forbidden"},

	// The request. A signature that is refused was made for another account, by two public
	// reports; the documentation says that every account reads it.
	{status: http.StatusBadRequest, part: "invalid `signature` in `thinking` block", kind: account.ClientFault, rule: account.WhySignature},
	{status: http.StatusNotFound, kind: account.ClientFault, rule: "client"},
	{status: http.StatusConflict, kind: account.ClientFault, rule: "client"},
	{status: http.StatusRequestEntityTooLarge, kind: account.ClientFault, rule: "client"},
}

// extraUsages are refusals for want of paid extra usage, for whatever reason the request
// needed it. An account without funds for it refuses a request only because the plan's own window is spent,
// where the headers show that.
var extraUsages = []row{
	{phrase: "you're out of extra usage", kind: account.Entitlement, rule: "out-of-extra-usage", of: theOwnFeature},
	{phrase: "third-party apps now draw from your extra usage", kind: account.Entitlement, rule: "third-party-client", of: theThirdParty},
	{phrase: "this credential is only authorized for use with claude code", kind: account.Entitlement, rule: "third-party-client", of: theThirdParty},
}

// matches reports whether a failure under a status is the row's.
func (r row) matches(status int, f failure) bool {
	return (r.status == 0 || r.status == status) && (r.errorType == "" || r.errorType == f.kind) && (r.code == "" || r.code == f.code) &&
		strings.HasPrefix(f.message, r.phrase) && strings.Contains(f.message, r.part)
}

// among is the rejection by the first row that matches; the zero Rejection where none does.
func (c *refused) among(rows []row) account.Rejection {
	for _, r := range rows {
		if r.matches(c.status, c.failure) {
			return c.means(r)
		}
	}
	return account.Rejection{}
}

// means is the rejection that a row is for the request.
func (c *refused) means(r row) account.Rejection {
	x := rule(r.kind, r.rule)
	if r.kind != account.Entitlement && r.kind != account.Access {
		return x
	}
	switch r.of {
	case theModel: // the request's
	case theFeature:
		x.Feature = c.failure.featureOf(c.Request)
	case theOwnFeature:
		x.Feature = ownFeature(c.Request)
	case theLongContext:
		x.Feature = LongContext
	case theThirdParty:
		x.Feature = ThirdParty
	case theKeyPath:
		x.Feature = KeyPath
	case theWorkspace:
		x.Feature = account.FeatureOrganization
	}
	return x
}

// featureOf is the feature that a demand for credits names, or else that the request
// most likely was refused for.
func (f failure) featureOf(r provider.Request) string {
	switch {
	case strings.Contains(f.message, "long context"):
		return LongContext
	case strings.Contains(f.message, "fast mode"):
		return FastMode
	case strings.Contains(f.message, "this model") && r.Family != "":
		return FeatureOf(r.Family)
	default:
		return ownFeature(r)
	}
}

// ownFeature is the feature that most likely was the reason when a request was refused
// for the lack of one that is not named.
func ownFeature(r provider.Request) string {
	for _, f := range []string{LongContext, FastMode, ThirdParty} {
		if needs(r, f) {
			return f
		}
	}
	return ExtraUsage
}

// usageLimit reads the wording of 2025, "Claude AI usage limit reached|1752793200", with
// the reset behind the bar; the reset is zero when it could not be read.
func (f failure) usageLimit(at time.Time) (reset time.Time, ok bool) {
	if !f.says("claude ai usage limit reached") {
		return time.Time{}, false
	}
	_, epoch, _ := strings.Cut(f.message, "|")
	reset, _ = limits.Instant(epoch, at)
	return reset, true
}
