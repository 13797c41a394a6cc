package command_test

import (
	"runtime/debug"
	"testing"

	"holdfast/internal/command"
)

func TestBuildOf(t *testing.T) {
	info := func(modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.time", Value: "2026-11-30T10:00:00Z"}, {Key: "vcs.modified", Value: modified},
		}}
	}
	for want, got := range map[string]command.Build{
		"holdfast v1.2.3": command.BuildOf("v1.2.3", nil),
		"holdfast v1.2.4": command.BuildOf("v1.2.4", &debug.BuildInfo{}),
		"holdfast v1.2.5 (commit 0123abcd, 2026-11-30T10:00:00Z)":         command.BuildOf("v1.2.5", info("false")),
		"holdfast v1.2.6 (commit 0123abcd+changes, 2026-11-30T10:00:00Z)": command.BuildOf("v1.2.6", info("true")),
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
