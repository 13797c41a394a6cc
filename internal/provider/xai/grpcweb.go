package xai

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"holdfast/internal/core/account"
	"holdfast/internal/wire/limits"
)

// StatusError is a gRPC call that was refused; the HTTP status of such an answer is 200.
type StatusError struct {
	// Code is gRPC's status: 16 and 7 for a credential that is not taken, 9 for an account
	// that is a team's and has no personal allowance, 4 and 1 for a call to be made again.
	Code int
	// Message is the server's own, decoded.
	Message string
}

func (e *StatusError) Error() string { return fmt.Sprintf("grpc status %d: %q", e.Code, e.Message) }

// CallStatus reads the status of a call from a header or trailer: nil when it says that
// all is well or says nothing, else a *StatusError, or another error where the status is
// none. Some refusals come with their status among the HTTP headers and an empty body.
func CallStatus(h http.Header) error {
	status := h.Get("Grpc-Status")
	if status == "" {
		return nil
	}
	code, err := strconv.Atoi(status)
	if err != nil || code < 0 {
		return errors.New("the grpc status is not a number")
	}
	if code == 0 {
		return nil
	}
	message, err := url.PathUnescape(h.Get("Grpc-Message"))
	if err != nil {
		message = h.Get("Grpc-Message") // as it came
	}
	return &StatusError{code, message}
}

// UsageGRPC reads the body of a gRPC-Web answer of GetGrokCreditsConfig, which tells what
// Usage reads over REST. The message may be framed, with a trailer behind it or without,
// or stand alone.
//
// A zero is left out of the message, so a whole one whose reset can be read and that has
// no figure says 0. A broken frame or message, and one without a reset, is an error and
// never a 0; a refusal is a *StatusError.
func UsageGRPC(frames []byte, at time.Time) (account.Reading, error) {
	message, err := unframe(frames)
	if err != nil {
		return account.Reading{}, fmt.Errorf("read usage frames: %w", err)
	}
	var c credits
	err = fields(message, func(f field) error {
		if f.number == 1 {
			return c.decode(f.bytes, at)
		}
		return nil
	})
	if err != nil {
		return account.Reading{}, fmt.Errorf("read usage message: %w", err)
	}
	r, err := c.reading(at)
	if err != nil {
		return account.Reading{}, fmt.Errorf("read usage message: %w", err)
	}
	return r, nil
}

// trailer is the flag of a frame that holds trailers; a message's is 0.
const trailer = 0x80

// unframe takes the one message out of an answer's frames. A message that stands alone
// begins with its field 1 (0x0a), which no frame does.
func unframe(b []byte) ([]byte, error) {
	if len(b) > 0 && b[0] == 0x0a {
		return b, nil
	}
	var message []byte
	found, ended := false, false
	for len(b) > 0 {
		if ended {
			return nil, errors.New("something follows the trailer")
		}
		if len(b) < 5 {
			return nil, errors.New("a frame's head is cut off")
		}
		flag, length := b[0], binary.BigEndian.Uint32(b[1:5])
		if b = b[5:]; uint64(length) > uint64(len(b)) {
			return nil, errors.New("a frame is cut off")
		}
		content := b[:length]
		b = b[length:]
		switch {
		case flag == trailer:
			ended = true
			if err := trailerStatus(content); err != nil {
				return nil, err
			}
		case flag != 0: // compressed, which was not asked for, or unknown
			return nil, fmt.Errorf("a frame has the flag %#x", flag)
		case found:
			return nil, errors.New("there is a second message")
		default:
			message, found = content, true
		}
	}
	if !found {
		return nil, errors.New("there is no message")
	}
	return message, nil
}

// trailerStatus reads a trailer's lines.
func trailerStatus(content []byte) error {
	h := http.Header{}
	for line := range bytes.Lines(content) {
		if name, value, ok := strings.Cut(string(line), ":"); ok {
			h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	if h.Get("Grpc-Status") == "" {
		return errors.New("the trailer has no grpc status")
	}
	return CallStatus(h)
}

// field is one field of a protocol buffer: a number in value, or bytes, by its kind.
type field struct {
	number int
	kind   protowire.Type
	value  uint64
	bytes  []byte
}

// fields goes through the fields of a message. Every byte must belong to one.
func fields(message []byte, each func(field) error) error {
	for len(message) > 0 {
		var f field
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		f.number, f.kind = int(number), kind
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.value = uint64(v)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// decode reads a GrokCreditsConfig by the paths of its fields. The shares of products
// (field 7) hold floats of the same kind as the total, so taking the first float found
// would be wrong whenever the total is 0 and left out.
func (c *credits) decode(config []byte, at time.Time) error {
	return fields(config, func(f field) error {
		switch f.number {
		case 1:
			percent := float64(math.Float32frombits(uint32(f.value)))
			c.percent, c.unreadable = percent, f.kind != protowire.Fixed32Type
			return nil
		case 2:
			return f.cents(&c.onDemandCap)
		case 3:
			return f.cents(&c.onDemandUsed)
		case 4:
			return f.timestamp(&c.billing.start, at)
		case 5:
			return f.timestamp(&c.billing.end, at)
		case 8:
			return c.decodePeriod(f, at)
		case 12:
			return f.cents(&c.prepaid)
		}
		return nil
	})
}

func (c *credits) decodePeriod(period field, at time.Time) error {
	return fields(period.bytes, func(f field) error {
		switch f.number {
		case 1:
			switch f.value {
			case 1:
				c.length = byMonth
			case 2:
				c.length = byWeek
			}
		case 2:
			return f.timestamp(&c.period.start, at)
		case 3:
			return f.timestamp(&c.period.end, at)
		}
		return nil
	})
}

// cents reads a Cent, {1: val}; one that is empty is 0.
func (f field) cents(into *int64) error {
	*into = 0
	return fields(f.bytes, func(f field) error {
		if f.number == 1 && f.kind == protowire.VarintType {
			*into = int64(f.value) // two's complement, as int64 has it on the wire
		}
		return nil
	})
}

// timestamp reads a Timestamp, {1: seconds, 2: nanos}. One that no window resets at
// leaves the time untold.
func (f field) timestamp(into *time.Time, at time.Time) error {
	var seconds, nanos uint64
	err := fields(f.bytes, func(f field) error {
		if f.kind != protowire.VarintType {
			return nil
		}
		switch f.number {
		case 1:
			seconds = f.value
		case 2:
			nanos = f.value
		}
		return nil
	})
	if err != nil {
		return err
	}
	*into = time.Time{}
	const lastSecond = 253402300799 // of the year 9999, the last that a Timestamp can have
	if seconds > lastSecond || nanos >= uint64(time.Second) {
		return nil
	}
	told, ok := limits.Instant(time.Unix(int64(seconds), int64(nanos)).UTC().Format(time.RFC3339Nano), at)
	if ok {
		*into = told
	}
	return nil
}
