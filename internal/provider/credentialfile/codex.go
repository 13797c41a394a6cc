package credentialfile

import (
	"encoding/json"
	"errors"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/core/claims"
	"holdfast/internal/core/credential"
)

// codexClient is the OAuth client that Codex logs in with. It is public, and a renewal
// must name it.
const codexClient = "app_EMoamEEZ73f0CkXaXp7hrann"

// Refusals of Codex's file.
var (
	errCodexKey   = errors.New("this file of Codex holds an API key and no login; add the key itself, with --key-env or --key-stdin")
	errCodexAgent = errors.New("this file of Codex holds an agent's identity, which cannot be used here; log in with `codex login` first, or add an API key with --key-env")
	errCodexToken = errors.New("this file of Codex holds a personal access token, which cannot be renewed or used here; log in with `codex login` first, or add an API key with --key-env")
	errCodexCloud = errors.New("this file of Codex holds a key of another cloud, which is not served here; log in with `codex login` first")
	errCodexNone  = errors.New("Codex's file holds no access token; log in with `codex login` first")
	errCodexShape = errors.New("this is Codex's file, but its login is not written the way that is known here; log in with `codex login` again, or update holdfast")
	errCodexWhose = errors.New("Codex's file does not say which workspace its login is for, and nothing can be asked for without it; log in with `codex login` again")
)

// readCodex reads the login of Codex. What the tokens say of themselves counts before what
// stands beside them, which is how Codex sees it; only the workspace may stand there alone.
func readCodex(members map[string]json.RawMessage) (Login, error) {
	tokens := object(members["tokens"])
	access, refresh := text(tokens["access_token"]), text(tokens["refresh_token"])
	isKey := strings.EqualFold(text(members["auth_mode"]), "apikey")
	switch {
	case access != "" && !isKey:
	case tells(members["agent_identity"]):
		return Login{}, errCodexAgent
	case tells(members["personal_access_token"]):
		return Login{}, errCodexToken
	case tells(members["OPENAI_API_KEY"]):
		return Login{}, errCodexKey
	case tells(members["bedrock_api_key"]):
		return Login{}, errCodexCloud
	case isKey || !tells(tokens["access_token"]) && (tokens != nil || !tells(members["tokens"])):
		return Login{}, errCodexNone
	default:
		return Login{}, errCodexShape
	}
	if !isSafe(access, refresh) {
		return Login{}, errCodexShape
	}
	token, _ := claims.ReadChatGPT(access)
	id, _ := claims.ReadChatGPT(text(tokens["id_token"]))
	user, workspace, plan := first(token.User, id.User), first(token.Workspace, id.Workspace), first(token.Plan, id.Plan)
	if beside := strings.TrimSpace(text(tokens["account_id"])); workspace == "" && isSafe(beside) && !strings.HasPrefix(beside, "org-") {
		workspace = beside // an organization's id is not a workspace's
	}
	if workspace == "" {
		return Login{}, errCodexWhose
	}
	issued := token.IssuedAt
	if issued.IsZero() {
		issued = date(text(members["last_refresh"]))
	}
	return Login{
		Provider: account.OpenAI,
		Client:   ClientOf(account.OpenAI),
		Credential: credential.Credential{
			Access: credential.NewSecret(access), Refresh: credential.NewSecret(refresh),
			IssuedAt: issued, ExpiresAt: token.ExpiresAt,
			ClientID: codexClient, Principal: claims.ChatGPTPrincipal(user, workspace),
		},
		Plan: plan,
		Team: claims.IsTeamPlan(plan),
	}, nil
}

// first is the first text that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
