package functiontest

import (
	"archive/zip"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// Weigh reports how large a program is, and how large as the zip file that is deployed.
func Weigh(b *testing.B, path string) {
	b.Helper()
	var zipped counter
	for b.Loop() {
		zipped = 0
		file, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		archive := zip.NewWriter(&zipped)
		into, err := archive.Create("bootstrap")
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(into, file)
		if err != nil {
			b.Fatal(err)
		}
		if err := archive.Close(); err != nil {
			b.Fatal(err)
		}
		_ = file.Close()
		b.ReportMetric(float64(n)/1e6, "MB")
	}
	b.ReportMetric(float64(zipped)/1e6, "MB-zipped")
	b.ReportMetric(0, "ns/op") // of zipping, which nobody waits for
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Starts reports the time from exec to the first poll of the Runtime API, by which the
// platform knows that a function is up. AWS is out of reach, which nobody waits for.
func Starts(b *testing.B, path string) {
	b.Helper()
	polled, done := make(chan time.Time), make(chan struct{})
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		polled <- time.Now()
		select {
		case <-r.Context().Done():
		case <-done:
		}
	})}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	defer close(done)
	var took []time.Duration
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), path)
		cmd.Env = []string{
			"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(), "HOLDFAST_TABLE=holdfast", "HOLDFAST_KMS_KEY_ID=key",
			"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL=http://127.0.0.1:9",
		}
		start := time.Now()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-polled).Sub(start))
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[0].Microseconds())/1000, "ms-least")
	b.ReportMetric(0, "ns/op") // of the end of a process too
}
