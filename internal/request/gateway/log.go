package gateway

import (
	"context"
	"log/slog"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/metric"
	"holdfast/internal/core/placement"
	"holdfast/internal/provider"
)

// report is what the log line says.
type report struct {
	outcome  string // served, handed-back, refused, client-left, cut, panic
	account  string
	refusal  provider.RefusalKind
	attempts int
	storeFor time.Duration // of the read before the first send
	headers  time.Duration // from start to the upstream's headers
	// uploading is how long the client took to send its body; added what the gateway itself
	// took before the first send.
	uploading, added time.Duration
	rejections       []account.RejectionKind
	usage            provider.Usage
	err              error
}

// logLine is the one line that every request leaves.
func (x *exchange) logLine() {
	r := &x.report
	if r.outcome == "" {
		r.outcome = "answered-here"
	}
	attrs := []slog.Attr{
		slog.String("request", x.id), slog.String("outcome", r.outcome), slog.Int("status", x.w.status),
		milliseconds("total_ms", x.g.now().Sub(x.start)),
	}
	if x.name != "" {
		attrs = append(attrs, slog.String("provider", string(x.name)), slog.String("key", x.key.Name), slog.String("account", r.account),
			slog.String("pin", x.pinSaid), slog.String("conversation_key", x.who.Source), slog.String("model", x.req.Model),
			slog.Int("attempts", r.attempts), milliseconds("added_ms", r.added), milliseconds("store_ms", r.storeFor), milliseconds("upstream_headers_ms", r.headers))
	}
	if len(r.rejections) > 0 {
		attrs = append(attrs, slog.Any("rejections", r.rejections))
	}
	if r.refusal != "" {
		attrs = append(attrs, slog.String("error_kind", string(r.refusal)))
	}
	if r.usage.Prompt() > 0 {
		attrs = append(attrs, slog.Int64("input_tokens", r.usage.Prompt()), slog.Int64("cache_read_tokens", r.usage.CacheRead), slog.Int64("cache_write_tokens", r.usage.CacheWrite),
			slog.Int64("output_tokens", r.usage.Output))
	}
	level := slog.LevelInfo
	if x.name == "" && r.refusal == "" && r.err == nil {
		level = slog.LevelDebug // greetings and health checks
	}
	if r.err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", r.err.Error()))
	}
	x.g.log.LogAttrs(context.WithoutCancel(x.r.Context()), level, "request", attrs...)
}

// measure tells the one who measures, if anybody does.
func (x *exchange) measure() {
	if x.g.measure == nil || x.name == "" {
		return
	}
	x.g.measure(metric.Request{StoreUnavailable: x.report.refusal == provider.StoreUnavailable})
}

// milliseconds logs a duration to the microsecond.
func milliseconds(key string, d time.Duration) slog.Attr {
	return slog.Float64(key, float64(d.Microseconds())/1000)
}

// logPlan says why an account was chosen, or why none.
func (x *exchange) logPlan(p placement.Plan) {
	level := slog.LevelDebug
	if p.Decision != nil {
		level = slog.LevelInfo
	}
	ctx := x.r.Context()
	if !x.g.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("request", x.id), slog.String("why", p.Why)}
	if p.Step == placement.Serve {
		attrs = append(attrs, slog.String("account", x.sit.Candidates[p.Chosen].Account.Name))
	}
	if p.Decision != nil {
		attrs = append(attrs, slog.Any("candidates", p.Decision.Parts))
	}
	x.g.log.LogAttrs(ctx, level, "pick", attrs...)
}

func (x *exchange) logRejection(i int, a *answer, r account.Rejection) {
	x.report.rejections = append(x.report.rejections, r.Kind)
	attrs := []slog.Attr{
		slog.String("request", x.id), slog.String("account", x.sit.Candidates[i].Account.Name), slog.String("kind", string(r.Kind)),
		slog.String("rule", r.Rule), slog.String("code", r.Code), slog.String("model", r.Model),
	}
	if of := r.Thing(); of != (account.Thing{}) {
		attrs = append(attrs, slog.Any("of", of))
	}
	if a != nil {
		attrs = append(attrs, slog.Int("status", a.resp.StatusCode), slog.Any("limits", provider.LimitHeaders(a.resp.Header)))
	}
	x.g.log.LogAttrs(x.r.Context(), slog.LevelWarn, "rejection", attrs...)
}
