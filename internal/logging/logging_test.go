package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"holdfast/internal/core/credential"
	"holdfast/internal/logging"
)

func TestNoSecretLeaves(t *testing.T) {
	secrets := []string{
		"sk-ant-api03-AbC_dEf-123", "sk-ant-oat01-xyz987", "sk-proj-0123456789", "SK-ANT-API03-UPPER",
		"hf_DBxDseXdE3xqzf5MO4JD2xgHlE1J1HVoTzSj8r89Ibs1Qdsji", "xai-0123456789abcdefABCDEF",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
	}
	var out bytes.Buffer
	log := slog.New(logging.New(&out, slog.LevelInfo))
	for _, s := range secrets {
		log.Error("said", "text", "said "+s, "error", errors.New(`malformed status "`+s+`"`), "limits", map[string]string{"x": s}, s, "as a key", "bearer", "Bearer "+s)
	}
	log.Info("opaque", "header", "Authorization: bearer abcdefgh12345678")
	for _, s := range append(secrets, "abcdefgh12345678") {
		if strings.Contains(out.String(), s) {
			t.Errorf("%s left in %s", s, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("the line is no JSON any more: %v\n%s", err, line)
		}
	}
}

func TestOrdinaryLinesPassAsTheyAre(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logging.New(&out, slog.LevelInfo))
	log.Debug("not at this level")
	log.Info("request", "model", "claude-opus-5", "account", "task-force", "note", "the desk_top bearer")
	got := out.String()
	for _, want := range []string{`"model":"claude-opus-5"`, `"account":"task-force"`, `"note":"the desk_top bearer"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
	if strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line", got)
	}
}

func TestLevel(t *testing.T) {
	for text, want := range map[string]slog.Level{
		"debug": slog.LevelDebug, "WARN": slog.LevelWarn, "error": slog.LevelError, "info": slog.LevelInfo,
		"": slog.LevelInfo, "loud": slog.LevelInfo,
	} {
		if got := logging.Level(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// TestSecretsThatAreHeld is part of field case secrets-by-value: what no pattern knows is taken
// out by its value, and the line is JSON still.
func TestSecretsThatAreHeld(t *testing.T) {
	held := credential.Credential{
		Key: credential.NewSecret(`local"secret\key-0123456789`), Access: credential.NewSecret("6f1c2a9e-3b47-4d0a-9c55-0e8d7b6a5f41"),
		Refresh: credential.NewSecret("correct_horse_battery"),
	}
	if _, err := held.Plaintext(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := slog.New(logging.New(&out, slog.LevelInfo))
	for _, s := range []credential.Secret{held.Key, held.Access, held.Refresh} {
		text := s.Reveal()
		log.Warn("said", "code", text, "error", errors.New("said "+text+"!"), "limits", map[string]string{"x": strings.ToUpper(text)}, text, "as a name")
	}
	for line := range strings.Lines(out.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("the line is no JSON any more: %v\n%s", err, line)
		}
		if strings.Count(line, "[secret]") != 4 {
			t.Errorf("got %s, want four secrets taken out", line)
		}
	}
}
