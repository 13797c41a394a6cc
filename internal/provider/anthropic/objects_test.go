package anthropic_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/wire/body"
)

func TestObjects(t *testing.T) {
	const stored, lasting = 30 * 24 * time.Hour, 90 * 24 * time.Hour
	p := anthropic.Provider{}
	facts := body.Facts{PreviousResponseID: "resp_1", Objects: []string{"file_a"}}
	for path, want := range map[string][]string{
		"/v1/messages":                        {"file_a"},
		"/v1/messages/batches":                {"file_a"},
		"/v1/messages/batches/msgbatch_1":     {"msgbatch_1", "file_a"},
		"/v1/messages/batches/b/results":      {"b", "file_a"},
		"/v1/files/file_b/content":            {"file_b", "file_a"},
		"/v1/skills/skill_1/versions/1759178": {"skill_1", "file_a"},
	} {
		if diff := cmp.Diff(want, p.Names(path, "", facts)); diff != "" {
			t.Errorf("%s names (-want +got):\n%s", path, diff)
		}
	}
	ran := `{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"bash_code_execution_result","stdout":"","content":[{"type":"bash_code_execution_output","file_id":"file_made"}]}}`
	for _, tt := range []struct {
		name string
		got  []provider.Object
		want []provider.Object
	}{
		{
			"a message in a container", p.BodyMade("POST", "/v1/messages", facts, []byte(`{"id":"msg_1","content":[{"type":"text","text":"x"},`+ran+`],"container":{"id":"container_1","expires_at":"2027-04-03T10:00:00Z"}}`)),
			[]provider.Object{{ID: "container_1", Keep: stored}, {ID: "file_made", Keep: lasting}},
		},
		{"a message makes nothing by itself", p.BodyMade("POST", "/v1/messages", facts, []byte(`{"id":"msg_1","container":null}`)), nil},
		{"what a model gives a client's tool", p.BodyMade("POST", "/v1/messages", facts, []byte(`{"content":[{"type":"tool_use","input":{"file_id":"file_x"}}]}`)), nil},
		{"a streamed container, at the beginning", p.EventMade(facts, "message_start", []byte(`{"message":{"container":{"id":"container_1"}}}`)), []provider.Object{{ID: "container_1", Keep: stored}}},
		{"a streamed container, at the end", p.EventMade(facts, "message_delta", []byte(`{"delta":{"stop_reason":"end_turn","container":{"id":"container_1"}}}`)), []provider.Object{{ID: "container_1", Keep: stored}}},
		{"a streamed file", p.EventMade(facts, "content_block_start", []byte(`{"content_block":`+ran+`}`)), []provider.Object{{ID: "file_made", Keep: lasting}}},
		{"a tool that failed", p.EventMade(facts, "content_block_start", []byte(`{"content_block":{"type":"code_execution_tool_result","content":{"type":"code_execution_tool_result_error","file_id":"x"}}}`)), nil},
		{"a delta", p.EventMade(facts, "content_block_delta", []byte(`{"delta":{"type":"input_json_delta","container":{"id":"c"}}}`)), nil},
		{"a batch", p.BodyMade("POST", "/v1/messages/batches", facts, []byte(`{"id":"msgbatch_1"}`)), []provider.Object{{ID: "msgbatch_1", Keep: stored}}},
		{"a file", p.BodyMade("POST", "/v1/files", facts, []byte(`{"id":"file_b"}`)), []provider.Object{{ID: "file_b", Keep: lasting}}},
		{
			"a run of a deployment and its session", p.BodyMade("POST", "/v1/deployments/depl_1/run", facts, []byte(`{"id":"drun_1","session_id":"sesn_1"}`)),
			[]provider.Object{{ID: "drun_1", Keep: lasting}, {ID: "sesn_1", Keep: lasting}},
		},
		{"a count", p.BodyMade("POST", "/v1/messages/count_tokens", facts, []byte(`{"input_tokens":3}`)), nil},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := p.Removed("DELETE", "/v1/files/file_b"); got != "file_b" {
		t.Errorf("removed: got %q, want the file", got)
	}
}
