package anthropic

import (
	"strings"
	"time"

	"holdfast/internal/limits"
	"holdfast/internal/provider"
)

// lost are the phrases by which an account is out of money or out of access, with the
// names of their rules. All of them come under several statuses: no money as 400 and
// 429, a disabled organization as 400, 401 and 403.
var lost = []struct{ phrase, rule string }{
	{"you have reached your api usage limits", "spend-cap"},        // the tier's, until next month
	{"you have reached your specified", "spend-limit"},             // the owner's own, organization or workspace
	{"your credit balance is too low", "credit-balance"},           // prepaid
	{"this organization has been disabled", "disabled"},            //
	{"your organization has been disabled", "disabled"},            //
	{"your account has been disabled", "disabled"},                 //
	{"oauth token has been revoked", "login-revoked"},              // a refresh does not help
	{"oauth authentication is currently not allowed", "no-access"}, // the organization's policy
	{"account is no longer a member of the org", "no-access"},      //
	{"your account does not have access to claude", "no-access"},   //
}

// lostCodes are the codes for the same.
var lostCodes = map[string]string{
	"enforced_spend_limit_reached": "spend-cap",
	"oauth_org_not_allowed":        "no-access",
}

// funds is the rule by which the failure means that the account needs its owner; empty
// when it does not.
func (f failure) funds() string {
	if name := lostCodes[f.code]; name != "" {
		return name
	}
	for _, l := range lost {
		if f.says(l.phrase) {
			return l.rule
		}
	}
	if f.kind == "billing_error" {
		return "payment-required"
	}
	return ""
}

// credits is the rule by which the failure is about the right to a feature, and the
// feature; empty when it is about something else. The plan's windows have no part in it,
// whatever the headers beside it say.
func (f failure) credits(r provider.Request) (rule, feature string) {
	switch {
	case f.says("the long context beta is not yet available", "this authentication style is incompatible with the long context"):
		return "long-context", LongContext
	case f.code == "credits_required", f.says("usage credits are required", "extra usage is required"):
		return "credits-required", f.featureOf(r)
	default:
		return "", ""
	}
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

// extraUsage is the rule by which the failure is about paid extra usage, for whatever
// reason the request needed it; empty when it is about something else.
func (f failure) extraUsage(r provider.Request) (rule, feature string) {
	switch {
	case f.says("you're out of extra usage"):
		return "out-of-extra-usage", ownFeature(r)
	case f.says("third-party apps now draw from your extra usage", "this credential is only authorized for use with claude code"):
		return "third-party-client", ThirdParty
	default:
		return "", ""
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
