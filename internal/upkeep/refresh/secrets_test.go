package refresh_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/logging"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/provider/openai"
	"holdfast/internal/provider/xai"
	"holdfast/internal/test/issuertest"
	"holdfast/internal/test/logtest"
	"holdfast/internal/upkeep/refresh"
)

// Part of field case secrets-by-value: a token endpoint that repeats the refresh token, even
// one that is written like an error's code, brings it neither into the log nor into the store.
func TestRefreshTokenIsNotRepeated(t *testing.T) {
	const token = "correct_horse_battery_staple"
	for name, renewer := range map[account.Provider]provider.Renewer{
		account.Anthropic: anthropic.Provider{}, account.OpenAI: openai.Provider{}, account.XAI: xai.Provider{},
	} {
		for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusServiceUnavailable, http.StatusOK} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				b := begin(t, issuertest.Options{}, nil)
				b.acct.Provider = name
				c := b.stored()
				c.Refresh = credential.NewSecret(token)
				b.save(c, 1)
				log := &logtest.Log{}
				r := b.refresherWith(func(o *refresh.Options) {
					o.Renewers = map[account.Provider]provider.Renewer{name: renewer}
					o.Log = slog.New(logging.New(log, slog.LevelDebug))
				})
				body := fmt.Sprintf(`{"error":%q,"error_description":%[1]q,"code":%[1]q,"type":%[1]q}`, token)
				b.issuer.Next(issuertest.Fault{Status: status, Body: body}, issuertest.Fault{Status: status, Body: body})
				if _, err := r.Renew(t.Context(), b.acct, b.stored()); err == nil || strings.Contains(err.Error(), token) {
					t.Errorf("got %v, want an error without the token", err)
				}
				if !strings.Contains(log.String(), "renewal failed") || strings.Contains(log.String(), token) {
					t.Errorf("got the log %s, want it to report the failure without the token", log)
				}
				if kept := fmt.Sprintf("%+v %+v", b.renewal(), b.state()); strings.Contains(kept, token) {
					t.Errorf("the token is stored: %s", kept)
				}
			})
		}
	}
}
