package body_test

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/wire/body"
)

const (
	formType = "multipart/form-data; boundary=b"
	urlType  = "application/x-www-form-urlencoded"
)

// part is a part of a form with boundary b.
func part(head, value string) string { return "--b\r\n" + head + "\r\n\r\n" + value + "\r\n" }

func field(name, value string) string {
	return part(`Content-Disposition: form-data; name="`+name+`"`, value)
}

func TestReadForm(t *testing.T) {
	const end = "--b--\r\n"
	file := part("Content-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\nContent-Type: image/png", strings.Repeat("x\r\n--", 3000))
	type facts = body.Facts
	unread := facts{ModelUnread: true}
	for _, tt := range []struct {
		name, contentType, data string
		want                    facts
	}{
		{"a model", formType, field("model", "m") + end, facts{Model: "m"}},
		{"behind a file", formType, file + field("prompt", "model") + field("model", "m") + file + end, facts{Model: "m"}},
		{"with a type of its own", formType, part("Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=model", " m\r\n") + end, facts{Model: "m"}},
		{"by lines of another end", formType, strings.ReplaceAll(field("model", "m")+end, "\r\n", "\n"), facts{Model: "m"}},
		{"the same twice", formType, field("model", "m") + field("model", "m ") + end, facts{Model: "m"}},
		{"an end without a line's", formType, field("model", "m") + "--b--", facts{Model: "m"}},
		{"something behind the end", formType, field("model", "m") + end + field("model", "other"), facts{Model: "m"}},
		{"no model", formType, field("prompt", "m") + file + end, facts{}},
		{"no field", formType, end, facts{}},
		{"another name", formType, field("models", "m") + field("x-model", "m") + end, facts{}},
		{"a name in capitals", formType, field("Model", "m") + end, unread},
		{"a name in capitals beside the right one", formType, field("MODEL", "n") + field("model", "m") + end, facts{Model: "m"}},
		{"an empty model", formType, field("model", "") + end, facts{}},
		{"a file with an odd name", formType, field("model", "m") + part("Content-Disposition: form-data; name=file; filename=a b.wav", "x") + end, facts{Model: "m"}},
		{"nothing but one with an odd name", formType, part("Content-Disposition: form-data; name=file; filename=a b.wav", "x") + end, unread},
		{"nothing but one of two names", formType, part("Content-Disposition: form-data; name=file\r\nContent-Disposition: form-data; name=model", "m") + end, unread},
		{"nothing but one without a name", formType, part("Content-Type: text/plain", "m") + end, unread},
		{"two models", formType, field("model", "m") + field("model", "n") + end, facts{ModelUnread: true}},
		{"a file of that name", formType, part(`Content-Disposition: form-data; name="model"; filename=""`, "m") + end, unread},
		{"in base64", formType, part("Content-Disposition: form-data; name=model\r\nContent-Transfer-Encoding: base64", "bQ==") + end, unread},
		{"in eight bits", formType, part("Content-Disposition: form-data; name=model\r\nContent-Transfer-Encoding: 8bit", "m") + end, facts{Model: "m"}},
		{"in UTF-16", formType, field("model", "m\x00n\x00") + end, unread},
		{"not in UTF-8", formType, field("model", "m\xff") + end, unread},
		{"at the limit", formType, field("model", strings.Repeat("m", 2048)) + end, facts{Model: strings.Repeat("m", 2048)}},
		{"over the limit", formType, field("model", strings.Repeat("m", 2049)) + end, unread},
		{"as many parts as are read", formType, strings.Repeat(field("a", "x"), 998) + field("model", "m") + end, facts{Model: "m"}},
		{"more parts than are read", formType, field("model", "m") + strings.Repeat(field("a", "x"), 1000) + end, unread},
		{"cut behind a part", formType, field("model", "m"), unread},
		{"cut within a part", formType, field("model", "m") + "--b\r\nContent-", unread},
		{"nothing", formType, "", unread},
		{"no boundary in it", formType, "model=m", unread},
		{"another boundary", "multipart/form-data; boundary=c", field("model", "m") + end, unread},
		{"no boundary told", "multipart/form-data", field("model", "m") + end, unread},
		{"two boundaries told", "multipart/form-data; boundary=b; boundary=c", field("model", "m") + end, unread},
		{"another multipart", "multipart/mixed; boundary=b", field("model", "m") + end, unread},

		{"of a URL", urlType, "model=m", facts{Model: "m"}},
		{"of a URL, among others", urlType + ";charset=utf-8", "prompt=a&x&&model=a+b%2Dc&=&n=2", facts{Model: "a b-c"}},
		{"of a URL, with escapes in the name", urlType, "%6d%6f%64%65%6c=m", facts{Model: "m"}},
		{"of a URL, with a fault elsewhere", urlType, "a=%zz&model=m&b%=1", facts{Model: "m"}},
		{"of a URL, with a fault", urlType, "model=%zz", unread},
		{"of a URL, two", urlType, "model=m&model=n", unread},
		{"of a URL, none", urlType, "modelx=m", unread},
		{"of a URL, too long", urlType, "model=" + strings.Repeat("%6d", 2049), unread},
		{"of a URL, at the limit", urlType, "model=" + strings.Repeat("%6d", 2048), facts{Model: strings.Repeat("m", 2048)}},
		{"no form", "application/octet-stream", "model=m", unread},
		{"no type", ";", `"m"`, facts{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := body.Read([]byte(tt.data), []string{tt.contentType})
			if tt.name == "no type" {
				if err == nil {
					t.Error("got no error, want one: it is taken for JSON")
				}
				return
			}
			if tt.want.ModelUnread {
				got.Model = "" // of no use
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("got error %v, facts (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestRead(t *testing.T) {
	const object = `{"model":"m","stream":true}`
	type facts = body.Facts
	for _, tt := range []struct {
		name   string
		types  []string
		data   string
		want   facts
		offset int // of the fault; 0 for none
	}{
		{"JSON", []string{"application/json"}, object, facts{Model: "m", Stream: true}, 0},
		{"no type", nil, object, facts{Model: "m", Stream: true}, 0},
		{"another type", []string{"image/png"}, object, facts{Model: "m", Stream: true}, 0},
		{"a form's type", []string{formType}, object, facts{Model: "m", Stream: true}, 0},
		{"two types", []string{"text/json", formType}, object, facts{Model: "m", Stream: true}, 0},
		{"a mark and blanks", []string{"text/json"}, "\ufeff \r\n\t" + object, facts{Model: "m", Stream: true}, 0},
		{"two marks", []string{"text/json"}, "\ufeff\ufeff" + object, facts{ModelUnread: true}, 0},
		{"two types of a form", []string{formType, formType}, field("model", "m") + "--b--", facts{ModelUnread: true}, 0},
		{"a fault in JSON", []string{"application/json"}, `{"model": }`, facts{}, 10},
		{"a fault behind a mark", []string{"application/vnd.x+json"}, "\ufeff" + `{"model": }`, facts{}, 13},
		{"a fault in a text", []string{"text/plain; charset=utf-8"}, `{"model": }`, facts{}, 10},
		{"a fault without a type", nil, `{"model": }`, facts{}, 10},
		{"a fault in another type", []string{"text/json"}, `{"model": }`, facts{ModelUnread: true}, 0},
		{"a form that begins like JSON", []string{urlType}, `{x}=1&model=m`, facts{Model: "m"}, 0},
		{"nothing of another type", []string{"text/json"}, "", facts{ModelUnread: true}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := body.Read([]byte(tt.data), tt.types)
			offset := 0
			if fault := (*body.SyntaxError)(nil); errors.As(err, &fault) {
				offset = fault.Offset
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || offset != tt.offset {
				t.Errorf("got error %v, want one at %d; facts (-want +got):\n%s", err, tt.offset, diff)
			}
		})
	}
}

// What is read of a form as its one model is what the standard library's own readers of
// whole forms find there, and all that they find.
func FuzzRead(f *testing.F) {
	for _, data := range []string{
		field("model", "m") + "--b--", field("model", "m") + field("model", "n") + "--b--\r\n", field("prompt", "x") + field("model", " m"), "--b--",
		part("Content-Disposition: form-data; name=model; filename=x", "m") + "--b--", part("Content-Disposition: form-data; name*=utf-8''model", "m") + "--b--",
		"model=m", "a=1&model=m%20n&%6dodel=o", "mode%6c=%", "\ufeff{\"model\":\"m\"}", `{"model":1}`, "--b\n\n\n--b--", "--b\nContent-Disposition: form-data; name=model\n\nm\n--b--",
	} {
		f.Add([]byte(data), formType)
		f.Add([]byte(data), urlType)
	}
	f.Fuzz(func(t *testing.T, data []byte, contentType string) {
		got, err := body.Read(data, []string{contentType})
		if err != nil || got.ModelUnread || bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n"), []byte("{")) {
			return
		}
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
		media, params, _ := mime.ParseMediaType(contentType)
		var models []string
		switch media {
		case "multipart/form-data":
			r := multipart.NewReader(bytes.NewReader(data), params["boundary"])
			for {
				p, err := r.NextRawPart()
				if err != nil {
					break
				}
				if value, _ := io.ReadAll(p); p.FormName() == "model" {
					models = append(models, strings.TrimSpace(string(value)))
				}
			}
		case urlType:
			values, _ := url.ParseQuery(string(data))
			for _, v := range values["model"] {
				models = append(models, strings.TrimSpace(v))
			}
			if strings.Contains(string(data), ";") && len(models) == 0 {
				return // the library takes no field with one
			}
		default: // JSON, which was read as such
			return
		}
		slices.Sort(models)
		if models = slices.Compact(models); len(models) > 1 || len(models) == 1 && models[0] != got.Model || len(models) == 0 && got.Model != "" {
			t.Errorf("Read(%q, %q): got model %q, want that of %q", data, contentType, got.Model, models)
		}
	})
}
