package openai_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
	"holdfast/internal/wire/body"
)

const (
	day     = 24 * time.Hour
	stored  = 30 * day
	lasting = 90 * day
)

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		f          body.Facts
		want       []string
	}{
		{"a new response", "/v1/responses", body.Facts{}, nil},
		{"a stored response", "/v1/responses/resp_1", body.Facts{}, []string{"resp_1"}},
		{"below one", "/v1/responses/resp_1/input_items", body.Facts{}, []string{"resp_1"}},
		{"in the backend's spelling", "/backend-api/codex/responses/resp_1", body.Facts{}, []string{"resp_1"}},
		{"compact is no id", "/v1/responses/compact", body.Facts{}, nil},
		{"nor is input_tokens", "/v1/responses/input_tokens", body.Facts{}, nil},
		{"a file's content", "/v1/files/file-a/content", body.Facts{}, []string{"file-a"}},
		{"a file in a container", "/v1/containers/cntr_1/files/cfile_1", body.Facts{}, []string{"cntr_1"}},
		{"a stored chat", "/v1/chat/completions/chatcmpl-1/messages", body.Facts{}, []string{"chatcmpl-1"}},
		{"models are everybody's", "/v1/models/gpt-5.5", body.Facts{}, nil},
		{"a path that only begins alike", "/v1/filesystem/x", body.Facts{}, nil},
		{
			"what is continued before what is given", "/v1/responses",
			body.Facts{PreviousResponseID: "resp_1", Conversation: "conv_1", Objects: []string{"file-a"}},
			[]string{"resp_1", "conv_1", "file-a"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, openai.Provider{}.Names(tt.path, "", tt.f)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventMade(t *testing.T) {
	created := `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","store":true,"output":[],"conversation":{"id":"conv_1"}}}`
	for _, tt := range []struct {
		name, event, data string
		f                 body.Facts
		want              []provider.Object
	}{
		{"a response and its conversation", "response.created", created, body.Facts{}, []provider.Object{{ID: "resp_1", Keep: stored}, {ID: "conv_1", Keep: lasting}}},
		{"by the data's own word", "", created, body.Facts{}, []provider.Object{{ID: "resp_1", Keep: stored}, {ID: "conv_1", Keep: lasting}}},
		{"the request said not to store", "response.created", `{"response":{"id":"resp_1","object":"response"}}`, body.Facts{Unstored: true}, nil},
		{"the answer says it is not stored", "response.created", `{"response":{"id":"resp_1","object":"response","store":false,"conversation":null}}`, body.Facts{}, nil},
		{"store is left to the provider", "response.created", `{"response":{"id":"resp_1"}}`, body.Facts{}, []provider.Object{{ID: "resp_1", Keep: stored}}},
		{"once is enough", "response.completed", created, body.Facts{}, nil},
		{"a container", "response.output_item.done", `{"item":{"type":"code_interpreter_call","id":"ci_1","container_id":"cntr_1"}}`, body.Facts{Unstored: true}, []provider.Object{{ID: "cntr_1", Keep: day}}},
		{"an item without one", "response.output_item.done", `{"item":{"type":"message","id":"msg_1"}}`, body.Facts{}, nil},
		{"the model's words are no event", "response.output_text.delta", `{"delta":"\"response.created\" {\"id\":\"resp_2\"}"}`, body.Facts{}, nil},
		{"a stored chat", "", `{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[]}`, body.Facts{Stored: true}, []provider.Object{{ID: "chatcmpl-1", Keep: stored}}},
		{"a chat is not stored by itself", "", `{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[]}`, body.Facts{}, nil},
		{"the thread of a run", "thread.created", `{"id":"thread_1","object":"thread"}`, body.Facts{}, []provider.Object{{ID: "thread_1", Keep: lasting}}},
		{"the session of an agent", "", `{"type":"agent.session.created","event_id":"e","session":{"id":"asess_1"}}`, body.Facts{}, []provider.Object{{ID: "asess_1", Keep: lasting}}},
		{"not JSON", "response.created", `{`, body.Facts{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, openai.Provider{}.EventMade(tt.f, tt.event, []byte(tt.data))); diff != "" {
				t.Errorf("made (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBodyMade(t *testing.T) {
	for _, tt := range []struct {
		name, method, path, data string
		f                        body.Facts
		want                     []provider.Object
	}{
		{
			"a response", "POST", "/v1/responses", `{"id":"resp_1","object":"response","output":[{"type":"code_interpreter_call","container_id":"cntr_1"}],"conversation":null}`,
			body.Facts{}, []provider.Object{{ID: "resp_1", Keep: stored}, {ID: "cntr_1", Keep: day}},
		},
		{"one that is not stored", "POST", "/v1/responses", `{"id":"resp_1","object":"response"}`, body.Facts{Unstored: true}, nil},
		{"a compaction is not stored", "POST", "/v1/responses/compact", `{"id":"resp_1","object":"response.compaction"}`, body.Facts{}, nil},
		{"a file", "POST", "/v1/files", `{"id":"file-a","object":"file"}`, body.Facts{}, []provider.Object{{ID: "file-a", Keep: lasting}}},
		{"a list names no owner", "GET", "/v1/files", `{"object":"list","data":[{"id":"file-a"}]}`, body.Facts{}, nil},
		{"a file that was found", "GET", "/v1/files/file-a", `{"id":"file-a"}`, body.Facts{}, []provider.Object{{ID: "file-a", Keep: lasting}}},
		{"a deleted one", "DELETE", "/v1/files/file-a", `{"id":"file-a","deleted":true}`, body.Facts{}, nil},
		{"content of a file that has an id of its own", "GET", "/v1/files/file-a/content", `{"id":"file-b"}`, body.Facts{}, nil},
		{"a batch", "POST", "/v1/batches", `{"id":"batch_1","output_file_id":null}`, body.Facts{}, []provider.Object{{ID: "batch_1", Keep: lasting}}},
		{
			"a batch with results", "GET", "/v1/batches/batch_1", `{"id":"batch_1","output_file_id":"file-o","error_file_id":"file-e"}`,
			body.Facts{}, []provider.Object{{ID: "batch_1", Keep: lasting}, {ID: "file-o", Keep: lasting}, {ID: "file-e", Keep: lasting}},
		},
		{
			"an upload that became a file", "POST", "/v1/uploads/upload_1/complete", `{"id":"upload_1","file":{"id":"file-a"}}`,
			body.Facts{}, []provider.Object{{ID: "upload_1", Keep: day}, {ID: "file-a", Keep: lasting}},
		},
		{"a conversation", "POST", "/v1/conversations", `{"id":"conv_1"}`, body.Facts{}, []provider.Object{{ID: "conv_1", Keep: lasting}}},
		{"a chat", "POST", "/v1/chat/completions", `{"id":"chatcmpl-1"}`, body.Facts{}, nil},
		{"models", "GET", "/v1/models/gpt-5.5", `{"id":"gpt-5.5"}`, body.Facts{}, nil},
		{"no JSON", "POST", "/v1/files", `file`, body.Facts{}, nil},
		{
			"a job that has ended", "GET", "/v1/fine_tuning/jobs/ftjob-1", `{"id":"ftjob-1","fine_tuned_model":"ft:gpt-5.5:me::1","result_files":["file-r","file-s"]}`, body.Facts{},
			[]provider.Object{{ID: "ftjob-1", Keep: lasting}, {ID: "ft:gpt-5.5:me::1", Keep: lasting}, {ID: "file-r", Keep: lasting}, {ID: "file-s", Keep: lasting}},
		},
		{"a thread and its run", "POST", "/v1/threads/runs", `{"id":"run_1","thread_id":"thread_1"}`, body.Facts{}, []provider.Object{{ID: "run_1", Keep: lasting}, {ID: "thread_1", Keep: lasting}}},
		{"a video made of another", "POST", "/v1/videos/video_1/remix", `{"id":"video_2"}`, body.Facts{}, []provider.Object{{ID: "video_2", Keep: lasting}}},
		{"a session of live voice", "POST", "/v1/live/sessions", `{"session":{"id":"live_1"},"transport":{}}`, body.Facts{}, []provider.Object{{ID: "live_1", Keep: day}}},
		{
			"what an automation began", "POST", "/v1/agents/automations/auto_1/invocations", `{"id":"inv_1","session_id":"asess_1"}`, body.Facts{},
			[]provider.Object{{ID: "inv_1", Keep: lasting}, {ID: "asess_1", Keep: lasting}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, openai.Provider{}.BodyMade(tt.method, tt.path, tt.f, []byte(tt.data))); diff != "" {
				t.Errorf("made (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemoved(t *testing.T) {
	for _, tt := range []struct{ method, path, want string }{
		{"DELETE", "/v1/files/file-a", "file-a"},
		{"DELETE", "/v1/responses/resp_1", "resp_1"},
		{"GET", "/v1/files/file-a", ""},
		{"DELETE", "/v1/files", ""},
		{"DELETE", "/v1/vector_stores/vs_1/files/file-a", ""},
		{"DELETE", "/v1/models/ft-1", ""},
		{"DELETE", "/v1/models/ft:gpt-5.5:me::1", "ft:gpt-5.5:me::1"},
	} {
		if got := (openai.Provider{}).Removed(tt.method, tt.path); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.method, tt.path, got, tt.want)
		}
	}
}

// Whatever comes is read without harm, and ids are never empty.
func FuzzMade(f *testing.F) {
	f.Add("response.created", []byte(`{"response":{"id":"resp_1","conversation":{"id":"conv_1"},"output":[{"container_id":"c"}]}}`))
	f.Add("", []byte(`{"id":"x","output_file_id":"y","file":{"id":"z"},"object":"chat.completion.chunk"}`))
	f.Add("response.output_item.done", []byte(`{"item":[]}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		p := openai.Provider{}
		made := p.EventMade(body.Facts{Stored: true}, name, data)
		for _, path := range []string{"/v1/responses", "/v1/files", "/v1/uploads/x/complete"} {
			made = append(made, p.BodyMade("POST", path, body.Facts{}, data)...)
		}
		for _, o := range made {
			if o.ID == "" || o.Keep <= 0 {
				t.Errorf("got %+v, want an id and a time", o)
			}
		}
	})
}
