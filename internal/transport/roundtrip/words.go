package roundtrip

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// InOurWords returns an error of net/http's transport, or of reading an answer, that says in
// our own words what happened. The errors of net/http repeat what came, such as a malformed
// status line, and that may hold the account's secret. The original error stays wrapped.
func InOurWords(err error) error {
	if err == nil {
		return nil
	}
	return &spoken{err}
}

type spoken struct{ cause error }

func (e *spoken) Error() string { return words(e.cause) }
func (e *spoken) Unwrap() error { return e.cause }

func words(err error) string {
	var (
		dns     *net.DNSError
		op      *net.OpError
		number  syscall.Errno
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		slow    interface{ Timeout() bool }
		proxy   *ProxyError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "the request was cancelled"
	case errors.As(err, &proxy):
		return proxy.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no host has its name"
	case errors.As(err, &dns):
		return "its host name could not be looked up"
	case errors.As(err, &slow) && slow.Timeout():
		return "it took too long"
	case errors.As(err, &verify), errors.As(err, &unknown):
		return "its certificate is not trusted (SSL_CERT_FILE names those that are)"
	case errors.As(err, &record):
		return "what it sent is not TLS"
	case errors.As(err, &number) && errors.As(err, &op):
		return op.Op + ": " + number.Error()
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed before the answer was whole"
	}
	inner := err
	for next := err; next != nil; next = errors.Unwrap(next) {
		inner = next
	}
	return fmt.Sprintf("what it sent is not an HTTP answer (%T)", inner)
}
