package checkup_test

import (
	"testing"

	"holdfast/internal/core/checkup"
)

func TestOwnerOf(t *testing.T) {
	tests := []struct {
		name, principal, plan string
		want                  checkup.Verdict
	}{
		{"a person's login", "User/00000000-0000-4000-8000-000000000003", "SuperGrok Heavy", checkup.Personal},
		{"a team's login", "Team/00000000-0000-4000-8000-000000000004", "SuperGrok Heavy", checkup.Team},
		{"a team's login without a plan", "Team/00000000-0000-4000-8000-000000000004", "", checkup.Team},
		{"a type without an id", "Team/", "", checkup.Unknown},
		{"a workspace with a personal plan", "user-EXAMPLE/00000000-0000-4000-8000-000000000001", "pro", checkup.Personal},
		{"a workspace with a team's plan", "user-EXAMPLE/00000000-0000-4000-8000-000000000001", "team", checkup.Team},
		{"an enterprise plan", "", "enterprise", checkup.Team},
		{"a size behind the plan", "", "max 20x", checkup.Personal},
		{"the owner's own word", "", "family", checkup.Unknown},
		{"nothing told", "", "", checkup.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := checkup.OwnerOf(tt.principal, tt.plan); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
