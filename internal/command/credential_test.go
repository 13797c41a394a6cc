package command

import (
	"testing"

	"holdfast/internal/core/credential"
)

// No source of today tells a principal, so the rule is tested by itself.
func TestOtherOwner(t *testing.T) {
	of := func(principal string) credential.Credential { return credential.Credential{Principal: principal} }
	tests := []struct {
		name       string
		held, next string
		want       bool
	}{
		{"the same", "a", "a", false},
		{"another", "a", "b", true},
		{"not told before", "", "b", false},
		{"not told now", "a", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := otherOwner(of(tt.held), of(tt.next)); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
