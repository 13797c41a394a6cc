package body_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/wire/body"
)

func inspect(t *testing.T, data string) body.Facts {
	t.Helper()
	f, err := body.Inspect([]byte(data))
	if err != nil {
		t.Fatalf("Inspect(%.200q): %v", data, err)
	}
	return f
}

// wireBodies are bodies in the shapes that the three APIs have.
var wireBodies = map[string]string{
	"messages": `{"model":"claude-opus-4-6","max_tokens":32000,"stream":true,
		"metadata":{"user_id":"{\"device_id\":\"d-7\",\"account_uuid\":\"\",\"session_id\":\"3b1e6c1a-5d0f-4a55-9c0b-0a4f2f7d1c11\"}"},
		"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.99.abc; cc_entrypoint=cli; cch=0f3a1;"},
			{"type":"text","text":"You are a coding agent.\nToday is 2027-03-04.","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"Bash","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],
		"messages":[{"role":"user","content":[
			{"type":"text","text":"<system-reminder>\nToday's date is 2027-03-04.\n</system-reminder>"},
			{"type":"text","text":"Fix the build."}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"make"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"ok"}]}]}]}`,
	"responses": `{"include":["reasoning.encrypted_content"],"model":"gpt-5.5","instructions":"You are Codex.",
		"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"Sandbox on."}]},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix the build."}]},
			{"type":"reasoning","summary":[],"encrypted_content":"gAAAAAB"}],
		"tools":[{"type":"function","name":"shell"},{"type":"web_search"}],"store":false,"stream":true,
		"prompt_cache_key":"0199f0c0-0000-7000-8000-000000000001","client_metadata":{"session_id":"0199f0c0-0000-7000-8000-000000000001"}}`,
	"responses of a tier":  `{"model":"gpt-5.5","input":"Go on.","service_tier":"flex"}`,
	"responses with state": `{"model":"gpt-5.5","input":"Go on.","previous_response_id":"resp_1","conversation":{"id":"conv_1"}}`,
	"chat completions": `{"model":"grok-4.6","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}],
		"tools":[{"type":"function","function":{"name":"shell"}}],"stream":false}`,
	"title": `{"model":"claude-haiku-4-5","max_tokens":64,"tools":[],"messages":[{"role":"user","content":"Fix the build."}],
		"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"title":{"type":"string"}}}}}}`,
}

func TestFacts(t *testing.T) {
	type facts = body.Facts
	want := map[string]facts{
		"messages": {
			Model: "claude-opus-4-6", MaxTokens: 32000, Stream: true, Messages: 3, Answered: true, FirstUser: "Fix the build.",
			UserID: `{"device_id":"d-7","account_uuid":"","session_id":"3b1e6c1a-5d0f-4a55-9c0b-0a4f2f7d1c11"}`,
		},
		"responses": {
			Model: "gpt-5.5", Stream: true, Messages: 3, Answered: true, FirstUser: "Fix the build.", Encrypted: true, Unstored: true,
			PromptCacheKey: "0199f0c0-0000-7000-8000-000000000001", SessionID: "0199f0c0-0000-7000-8000-000000000001",
		},
		"responses of a tier":  {Model: "gpt-5.5", FirstUser: "Go on.", ServiceTier: "flex"},
		"responses with state": {Model: "gpt-5.5", FirstUser: "Go on.", PreviousResponseID: "resp_1", Conversation: "conv_1"},
		"chat completions":     {Model: "grok-4.6", Messages: 2, FirstUser: "Hello"},
		"title": {
			Model: "claude-haiku-4-5", MaxTokens: 64, Messages: 1, FirstUser: "Fix the build.", ToolsEmpty: true, OutputTitle: true,
		},
	}
	hashed := map[string][2]bool{ // system, tools
		"messages": {true, true}, "responses": {true, true}, "chat completions": {true, true},
	}
	for name, data := range wireBodies {
		t.Run(name, func(t *testing.T) {
			got := inspect(t, data)
			if has := [2]bool{got.SystemHash != [32]byte{}, got.ToolsHash != [32]byte{}}; has != hashed[name] {
				t.Errorf("has a system hash, a tools hash: got %v, want %v", has, hashed[name])
			}
			got.SystemHash, got.ToolsHash = [32]byte{}, [32]byte{}
			if diff := cmp.Diff(want[name], got); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFactsOfOddBodies(t *testing.T) {
	type facts = body.Facts
	tests := []struct {
		name, data string
		want       facts
	}{
		{"empty object", ` {} `, facts{}},
		{"other types", `{"model":7,"stream":"true","max_tokens":"5","metadata":[1],"prompt_cache_key":null,"messages":{"a":1},"conversation":true}`, facts{ModelUnread: true}},
		{"user_id is an object", `{"metadata":{"user_id":{"session_id":"s"}}}`, facts{}},
		{"user_id of 5 kB", `{"metadata":{"user_id":"` + strings.Repeat("u", 5000) + `"}}`, facts{}},
		{"user_id at the limit", `{"metadata":{"user_id":"` + strings.Repeat("u", 2048) + `"}}`, facts{UserID: strings.Repeat("u", 2048)}},
		{"user_id over the limit", `{"metadata":{"user_id":"` + strings.Repeat("u", 2049) + `"}}`, facts{}},
		{"user_id over the limit by a wide character", `{"metadata":{"user_id":"` + strings.Repeat("u", 2047) + `€"}}`, facts{}},
		{"last one wins", `{"model":"a","stream":true,"model":"b","stream":false,"metadata":{"user_id":"u"},"metadata":{}}`, facts{Model: "b", ModelUnread: true}},
		{"last one wins, of another type", `{"model":"a","model":null}`, facts{ModelUnread: true}},
		{"a model twice", `{"model":"a","stream":true,"model":"a"}`, facts{Model: "a", Stream: true}},
		{"two models of three", `{"model":"a","model":"b","model":"b"}`, facts{Model: "b", ModelUnread: true}},
		{"a model that is null", `{"model":null}`, facts{}},
		{"an empty model", `{"model":""}`, facts{}},
		{"an empty model and another", `{"model":"","model":"a"}`, facts{Model: "a", ModelUnread: true}},
		{"a model that is an object", `{"model":{"model":"a"}}`, facts{ModelUnread: true}},
		{"a model over the limit", `{"model":"` + strings.Repeat("m", 2049) + `"}`, facts{ModelUnread: true}},
		{"messages twice", `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"messages":[{"role":"user","content":"c"}]}`, facts{Messages: 1, FirstUser: "c"}},
		{"content twice", `{"messages":[{"content":"a","role":"user","content":[{"type":"text","text":"b"}]}]}`, facts{Messages: 1, FirstUser: "b"}},
		{"tools twice", `{"tools":[],"tools":null}`, facts{}},
		{"escaped names", `{"mo\u0064el":"m","\u0073tream":true,"messa\u0067es":[{"r\u006fle":"us\u0065r","content":"a"}]}`, facts{Model: "m", Stream: true, Messages: 1, FirstUser: "a"}},
		{"a space in the last word", `{"a":" "}`, facts{}},
		{"names in other case", `{"Model":"m","STREAM":true}`, facts{ModelUnread: true}},
		{"a name in other case beside the right one", `{"model":"m","MODEL":"n"}`, facts{Model: "m"}},
		{"names in nested objects", `{"x":{"model":"m","tools":[]},"y":[{"messages":[1]}]}`, facts{}},
		{"escapes", `{"model":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00\ud83d\ude00x"}`, facts{Model: "\"\\/\b\f\n\r\tä😀😀x"}},
		{"lone surrogates", `{"model":"\ud83dx\ude00\ud83d\ud83d\ude00"}`, facts{Model: "\ufffdx\ufffd\ufffd😀"}},
		{"bytes that are not UTF-8", "{\"model\":\"a\xff\xe4\xc3\xa4\"}", facts{Model: "a\ufffd\ufffdä"}},
		{"max_tokens with a fraction", `{"max_tokens":5.0}`, facts{}},
		{"max_tokens beyond int64", `{"max_tokens":99999999999999999999}`, facts{}},
		{"encrypted content without a value", `{"input":[{"encrypted_content":null},{"encrypted_content":""},{"encrypted_content":{"a":"b"}}]}`, facts{Messages: 3}},
		{"encrypted content, deep", `{"input":[{"output":[{"a":[{"encrypted\u005fcontent":"x"}]}]}]}`, facts{Messages: 1, Encrypted: true}},
		{"a file", `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_011C"}}]}]}`, facts{Messages: 1, Objects: []string{"file_011C"}}},
		{"a tool's own file id", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"file_id":"readme"}}]}]}`, facts{Messages: 1, Answered: true}},
		{"a container", `{"container":"container_011C"}`, facts{Objects: []string{"container_011C"}}},
		{"a container with skills", `{"container":{"id":"container_011C","skills":[]}}`, facts{Objects: []string{"container_011C"}}},
		{"a container of a tool and its files", `{"x":[{"type":"code_interpreter","container":"cntr_1"},{"container":{"type":"auto","file_ids":["file-a","file-b", "file-a"]}}]}`, facts{Objects: []string{"cntr_1", "file-a", "file-b"}}},
		{"a container of an earlier call", `{"input":[{"type":"code_interpreter_call","id":"ci_1","container_id":"cntr_2","code":""}]}`, facts{Messages: 1, Objects: []string{"cntr_2"}}},
		{"a reference to an item", `{"input":[{"role":"user","content":"a"},{"type":"item_reference","id":"any-1"},{"id":"msg_2"},{"id":"any-2"}]}`, facts{Messages: 4, FirstUser: "a", Items: []string{"any-1", "msg_2"}}},
		{"reasoning without its content", `{"input":[{"type":"reasoning","id":"rs_1","summary":[{"text":"s"}]},{"id":"rs_2","encrypted_content":"","type":"reasoning","content":[ ]},{"type":"reasoning","id":"rs_3","content":[{"text":"t"}],"summary":[]}]}`, facts{Messages: 3, Answered: true, Items: []string{"rs_1", "rs_2"}}},
		{"reasoning with its content", `{"input":[{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA"}]}`, facts{Messages: 1, Answered: true, Encrypted: true}},
		{"pictures", `{"input":[{"type":"image_generation_call","id":"ig_1","quality":"high","result":null},{"type":"image_generation_call","id":"ig_2","result":"iVBO"}]}`, facts{Messages: 2, Items: []string{"ig_1"}}},
		{"messages and calls", `{"input":[{"type":"message","role":"assistant","id":"msg_1","content":[]},{"type":"message","role":"assistant","id":"msg_2"},{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":""},{"type":"function_call","id":"fc_2","call_id":"c"}]}`, facts{Messages: 4, Answered: true, Items: []string{"msg_2", "fc_2"}}},
		{"items behind a long beginning", `{"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}` + strings.Repeat(`,{"role":"user","content":"c"}`, 30) + `,{"type":"item_reference","id":"rs_1"},{"type":"item_reference","id":"rs_1"}]}`, facts{Messages: 34, Answered: true, FirstUser: "a", Items: []string{"rs_1"}}},
		{"more items than are kept", `{"input":[{"id":"rs_1"},{"id":"rs_2"},{"id":"rs_3"},{"id":"rs_4"},{"id":"rs_5"},{"id":"rs_6"},{"id":"rs_7"},{"id":"rs_8"},{"id":"rs_9"}]}`, facts{Messages: 9, Items: []string{"rs_1", "rs_2", "rs_3", "rs_4", "rs_5", "rs_6", "rs_7", "rs_8"}}},
		{"an item's word that is no id", `{"input":[{"id":"one"},{"id":"rs_"},{"id":"r s_1"},{"id":7},{"id":"rs_\u0041"},{"x":{"id":"rs_1"}}]}`, facts{Messages: 6}},
		{"items of Messages", `{"messages":[{"id":"msg_1","role":"assistant"}]}`, facts{Messages: 1, Answered: true}},
		{"input twice", `{"input":[{"id":"rs_1"}],"input":[{"id":"rs_2"}]}`, facts{Messages: 1, Items: []string{"rs_2"}}},
		{"what a session is made of", `{"agent":{"type":"agent","id":"agent_1"},"environment_id":"env_1","vault_ids":["vlt_1","vlt_2"],"resources":[{"type":"memory_store","memory_store_id":"memstore_1"},{"type":"file","file_id":"file_1"}]}`, facts{Objects: []string{"file_1"}, Parts: []string{"agent_1", "env_1", "vlt_1", "vlt_2", "memstore_1"}}},
		{"what a run is made of", `{"assistant_id":"asst_1","thread_id":"thread_1","agent":"agent_1","agent_id":"agent smith"}`, facts{Parts: []string{"asst_1", "thread_1", "agent_1"}}},
		{"metadata names no part", `{"metadata":{"agent_id":"agent_1","x":{"thread_id":"thread_1"}},"thread_id":"thread_2"}`, facts{Parts: []string{"thread_2"}}},
		{"collections", `{"source":{"collection_ids":["collection_1"]},"vector_store_ids":["collection_2"]}`, facts{Objects: []string{"collection_1", "collection_2"}}},
		{"the files of tuning", `{"training_file":"file-a","validation_file":"file-b"}`, facts{Objects: []string{"file-a", "file-b"}}},
		{"a batch's input", `{"input_file_id":"file-in"}`, facts{Objects: []string{"file-in"}}},
		{"a skill of the workspace", `{"container":{"skills":[{"type":"custom","skill_id":"skill_01"},{"type":"anthropic","skill_id":"pptx"}]}}`, facts{Objects: []string{"skill_01"}}},
		{"vector stores", `{"x":[{"type":"file_search","vector_store_ids":["vs_1","vs_2"]}]}`, facts{Objects: []string{"vs_1", "vs_2"}}},
		{"one file many times", `{"input":[{"file_id":"file-a"},{"file_id":"file-a"}]}`, facts{Messages: 2, Objects: []string{"file-a"}}},
		{"more files than are kept", `{"file_ids":["file-` + strings.Join(strings.Split("abcdefghijklmnopqrst", ""), `","file-`) + `"]}`, facts{Objects: strings.Split("file-"+strings.Join(strings.Split("abcdefghijklmnop", ""), " file-"), " ")}},
		{"no ids", `{"file_id":"file_","file_ids":"file-a","container":"container_\u0041","id":"cntr_` + strings.Repeat("a", 129) + `","skill_id":"skill_a b","input_file_id":["file-a"]}`, facts{}},
		{"an odd element ends a list", `{"file_ids":["file-a",7,"file-b"],"vector_store_ids":[]}`, facts{Objects: []string{"file-a"}}},
		{"stored", `{"store":true}`, facts{Stored: true}},
		{"not stored", `{"store":true,"store":false}`, facts{Unstored: true}},
		{"store of another type", `{"store":"false"}`, facts{}},
		{"a new container", `{"container":{"skills":[]}}`, facts{}},
		{"a file in a text", `{"input":"\"file_id\":\"file_011C\""}`, facts{FirstUser: `"file_id":"file_011C"`}},
		{"encrypted content in a text", `{"input":"{\"encrypted_content\":\"x\"}"}`, facts{FirstUser: `{"encrypted_content":"x"}`}},
		{"both messages and input", `{"input":"a","messages":[{"role":"user","content":"b"}]}`, facts{Messages: 1, FirstUser: "b"}},
		{"the role comes last", `{"messages":[{"content":"a","role":"assistant"},{"content":[{"text":"b","type":"text"}],"role":"user"}]}`, facts{Messages: 2, Answered: true, FirstUser: "b"}},
		{"a call is a turn of the model's", `{"input":[{"role":"user","content":"a"},{"type":"function_call","name":"f"}]}`, facts{Messages: 2, Answered: true, FirstUser: "a"}},
		{"first user message without text", `{"messages":[{"role":"user","content":[{"type":"image","text":"x"}]},{"role":"user","content":"b"}]}`, facts{Messages: 2, FirstUser: "b"}},
		{"a schema without title", `{"output_config":{"format":{"schema":{"title":"t","properties":{"a":{"title":"x"}}}}}}`, facts{}},
		{"a schema twice", `{"output_config":{"format":{"schema":{"properties":{"title":1},"properties":{}}},"format":{"schema":{"properties":{"title":1}},"schema":{}}}}`, facts{}},
		{"a format twice", `{"output_config":{"format":{"schema":{"properties":{"title":1}}},"format":null}}`, facts{}},
		{"tools of odd kinds", `{"tools":{}}`, facts{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, inspect(t, tt.data)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirstUser(t *testing.T) {
	long := strings.Repeat("ä", 3000)
	tests := []struct{ name, content, want string }{
		{"string", `"Fix it."`, "Fix it."},
		{"parts", `[{"type":"text","text":"Fix"},{"type":"image","source":{}},{"type":"text","text":"it."}]`, "Fix\nit."},
		{"a reminder in a part of its own", `[{"type":"text","text":"<system-reminder>a</system-reminder>\n"},{"type":"text","text":"Fix it."}]`, "Fix it."},
		{"a reminder before the text", `"<system-reminder>\na\n</system-reminder>\n\nFix it."`, "Fix it."},
		{"a reminder amid the text", `"Fix <system-reminder>a</system-reminder>it."`, "Fix it."},
		{"a reminder without an end", `[{"type":"text","text":"Fix it.\n<system-reminder>a"},{"type":"text","text":"Now."}]`, "Fix it.\nNow."},
		{"an escaped reminder", `"\u003csystem-reminder\u003ea\u003c\/system-reminder\u003eFix it."`, "Fix it."},
		{"longer than is kept", `"` + long + `"`, strings.Repeat("ä", 2048)},
		{"cut at a character", `"x` + long + `"`, "x" + strings.Repeat("ä", 2047)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, member := range []string{"messages", "input"} {
				data := `{"` + member + `":[{"role":"user","content":` + tt.content + `}]}`
				if got := inspect(t, data).FirstUser; got != tt.want {
					t.Errorf("first user text of %s: got %.50q (%d bytes), want %.50q (%d bytes)", member, got, len(got), tt.want, len(tt.want))
				}
			}
		})
	}
}

func TestSyntaxErrors(t *testing.T) {
	deep := func(levels int) string {
		return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	if _, err := body.Inspect([]byte(deep(10000))); err != nil {
		t.Errorf("10000 levels: got %v, want no error", err)
	}
	tests := []struct {
		name, data string
		offset     int
		reason     string
	}{
		{"nothing", ``, 0, "it ends where an object belongs"},
		{"space", " \n", 2, "it ends where an object belongs"},
		{"an array", ` [1]`, 1, `there is '[' where an object belongs`},
		{"a string", `"{}"`, 0, `there is '"' where an object belongs`},
		{"compressed", "\x28\xb5\x2f\xfd", 0, `there is '(' where an object belongs`},
		{"a byte order mark", "\xef\xbb\xbf{}", 0, `there is a byte 0xef where an object belongs`},
		{"cut", `{"a":`, 5, "it ends where a value belongs"},
		{"cut in a string", `{"a":"b`, 7, "it ends inside a string"},
		{"cut in an escape", `{"a":"\u00`, 10, "it ends where a hexadecimal digit of an escape belongs"},
		{"something behind", `{} x`, 3, `there is 'x' where the end belongs`},
		{"a second object", `{}{}`, 2, `there is '{' where the end belongs`},
		{"no colon", `{"a" 1}`, 5, `there is '1' where a colon belongs`},
		{"no comma", `{"a":1 "b":2}`, 7, `there is '"' where a comma or the end of an object belongs`},
		{"comma at the end of an object", `{"a":1,}`, 7, `there is '}' where a member's name belongs`},
		{"comma at the end of an array", `{"a":[1,]}`, 8, `there is ']' where a value belongs`},
		{"wrong bracket", `{"a":[1}}`, 7, `there is '}' where a comma or the end of an array belongs`},
		{"name without quotes", `{a:1}`, 1, `there is 'a' where a member's name belongs`},
		{"leading zero", `{"a":01}`, 6, `there is '1' where a comma or the end of an object belongs`},
		{"no digit behind the point", `{"a":1.}`, 7, `there is '}' where a digit belongs`},
		{"no digit in the exponent", `{"a":1e+}`, 8, `there is '}' where a digit belongs`},
		{"minus alone", `{"a":-}`, 6, `there is '}' where a digit belongs`},
		{"NaN", `{"a":NaN}`, 5, `there is 'N' where a value belongs`},
		{"a wrong literal", `{"a":trUe}`, 7, `there is 'U' where the rest of true belongs`},
		{"line break in a string", "{\"a\":\"b\n\"}", 7, "there is a control character in a string"},
		{"line break late in a string", "{\"a\":\"0123456789abcdef\x1f\"}", 22, "there is a control character in a string"},
		{"unknown escape", `{"a":"\x41"}`, 7, `there is 'x' where the letter of an escape belongs`},
		{"an escape of three digits", `{"a":"\u000g"}`, 11, `there is 'g' where a hexadecimal digit of an escape belongs`},
		{"10001 levels", deep(10001), 10004, "values nest deeper than 10000 levels"},
		{"a fault in a message", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},]}]}`, 66, `there is ']' where a value belongs`},
		{"a fault in system text", `{"system":[{"type":"text" "text":"a"}]}`, 26, `there is '"' where a comma or the end of an object belongs`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := body.Inspect([]byte(tt.data))
			var got *body.SyntaxError
			if !errors.As(err, &got) {
				t.Fatalf("error: got %v, want a *SyntaxError", err)
			}
			if want := (body.SyntaxError{Offset: tt.offset, Reason: tt.reason}); *got != want {
				t.Errorf("error: got %+v, want %+v", *got, want)
			}
			if diff := cmp.Diff(body.Facts{}, f); diff != "" {
				t.Errorf("facts beside an error (-want +got):\n%s", diff)
			}
		})
	}
}

// The scanner reads strings eight bytes at a time: every place in such a word is tried.
func TestStringsOfAllLengths(t *testing.T) {
	for length := range 40 {
		for at := range length + 1 {
			for _, c := range []string{"", `\n`, `\u00e4`, `\"`, "ä", "\x1f", "\n", "\x80", `\`, `"`} {
				text := strings.Repeat("x", at) + c + strings.Repeat("y", length-at)
				data := []byte(`{"` + text + `":"` + text + `","model":"` + text + `"}`)
				checkAgainstReference(t, data)
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	data := []byte(wireBodies["messages"])
	// One for each string in the facts: model, user id, first user text; spare ones for
	// the pool, which may have been emptied.
	if got := testing.AllocsPerRun(100, func() { _, _ = body.Inspect(data) }); got > 8 {
		t.Errorf("allocations: got %v, want at most 8", got)
	}
}

func checkAgainstReference(t *testing.T, data []byte) {
	t.Helper()
	var object map[string]json.RawMessage
	valid := json.Unmarshal(data, &object) == nil && object != nil
	got, err := body.Inspect(data)
	if (err == nil) != valid {
		t.Fatalf("Inspect(%.300q): got error %v, want valid %v", data, err, valid)
	}
	if !valid {
		var se *body.SyntaxError
		if !errors.As(err, &se) || se.Offset < 0 || se.Offset > len(data) {
			t.Fatalf("Inspect(%.300q): got %#v, want a *SyntaxError with an offset in the body", data, err)
		}
		return
	}
	if diff := cmp.Diff(reference(data), got); diff != "" {
		t.Fatalf("Inspect(%.300q) (-reference +got):\n%s", data, diff)
	}
}

func FuzzInspect(f *testing.F) {
	for _, data := range wireBodies {
		f.Add([]byte(data))
	}
	for _, data := range []string{
		``, `{`, `[]`, `{}`, `{"a":[{},[],[[]],{"b":{"c":null}}],"d":-0.5e+7}`, `{"a":1}}`, `{"a":[}`,
		"{\"a\":\"\\ud800\\u0041\xff\",\"mod\\u0065l\":\"x\"}", `{"model":null,"model":"a","model":"a"}`, `{"model":"a","model":1,"tools":[{"type":"t"},{"name":"n"}],"tools":[]}`,
		`{"file_ids":["file-a" ,"file_b",{"id":"cntr_c"}],"container":{"id":"container_d","file_id":"file-"},"store":false,"vector_store_ids":["vs_a"}`,
		`{"system":"Now: 10:42\nMar 4\nabc1234\nsteady\n<system-reminder>x","input":"<system-reminder>a</system-reminder> b"}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(checkAgainstReference)
}

func ExampleInspect() {
	_, err := body.Inspect([]byte(`{"model": }`))
	fmt.Println(err)
	// Output: at byte 10 there is '}' where a value belongs
}
