package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

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
