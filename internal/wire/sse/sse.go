package sse

import (
	"bytes"

	"holdfast/internal/wire/excerpt"
)

const (
	// maxEvent bounds the data of an event that are told whole, in bytes, and the excerpt of
	// larger ones; maxName bounds its name.
	maxEvent, maxName = 64 << 10, 256
	// keepData is the most memory kept for the data of the next event, in bytes: streams
	// are many, and large events few.
	keepData = 32 << 10
	// keepNames bounds how many names are remembered. The widest protocol has some fifty.
	keepNames = 128
)

var (
	byteOrderMark = []byte{0xef, 0xbb, 0xbf}
	lineFeed      = []byte{'\n'}
)

// place says where in a line a Parser stands.
type place uint8

const (
	atStart   place = iota // nothing of the line was seen
	inField                // in the field's name
	behind                 // right behind the colon: a space here does not count
	inValue                // in the value
	inComment              // in a line that says nothing, or in the name of a field that is not read
)

type field uint8

const (
	otherField field = iota
	dataField
	eventField
)

// Parser reads one stream. Its zero value is at the beginning of one. It is not for use
// by several goroutines at once.
type Parser struct {
	mark   uint8 // how many bytes of a byte order mark were seen; past it when 4
	where  place
	field  field
	word   [5]byte // the field's name so far
	length uint8   // of word; 6 when it is too long to be ours
	cr     bool    // the last byte was a CR: an LF now would be part of the same line end
	bareCR bool    // the line end before that CR was a CR alone

	amid    bool // since the last blank line there was one that is no comment
	begun   bool // there was a line
	hasData bool
	data    []byte
	long    *excerpt.Reader // of data that went over maxEvent; nil for others
	name    []byte
	names   map[string]string // by themselves, so that a name seen before costs nothing
}

// Feed takes the next bytes of the stream and calls emit for every event that ends in
// them. The name is empty where the stream gave none. The data are those of the event,
// without the line end behind them, or an excerpt of them, and only lent: emit must not keep
// them. They are nil where there were too many to hold and they are not JSON.
func (p *Parser) Feed(chunk []byte, emit func(name string, data []byte)) {
	if p.mark < 4 {
		chunk = p.skipMark(chunk, emit)
	}
	for len(chunk) > 0 {
		if p.cr {
			p.cr = false
			if chunk[0] == '\n' {
				p.bareCR = false
				chunk = chunk[1:]
				continue
			}
			p.bareCR = true
		}
		end := lineEnd(chunk)
		if end < 0 {
			p.part(chunk)
			return
		}
		if end > 0 {
			p.part(chunk[:end])
		}
		p.cr = chunk[end] == '\r'
		if !p.cr {
			p.bareCR = false
		}
		p.endLine(emit)
		chunk = chunk[end+1:]
	}
}

// Boundary reports whether the stream so far ends exactly between two events, or has not
// begun, so that a comment or an event put in here would do no harm. Comments of the stream's
// own may stand there. After a CR it does so only where
// the stream has shown that it ends lines with CR alone: an LF that belongs to it may
// follow.
func (p *Parser) Boundary() bool {
	if p.where != atStart || p.mark == 1 || p.mark == 2 {
		return false
	}
	return !p.begun || !p.amid && (!p.cr || p.bareCR)
}

// skipMark takes a byte order mark off the beginning of a stream.
func (p *Parser) skipMark(chunk []byte, emit func(string, []byte)) []byte {
	for len(chunk) > 0 && p.mark < 3 && chunk[0] == byteOrderMark[p.mark] {
		p.mark++
		chunk = chunk[1:]
	}
	if p.mark == 3 {
		p.mark = 4
	}
	if len(chunk) > 0 && p.mark < 4 {
		seen := byteOrderMark[:p.mark]
		p.mark = 4
		p.Feed(seen, emit) // it was the beginning of something else
	}
	return chunk
}

// lineEnd is where the first CR or LF is, or -1.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// part takes more of a line: some bytes without a line end.
func (p *Parser) part(b []byte) {
	if p.where == atStart {
		p.where, p.length = inField, 0
		p.amid = p.amid || b[0] != ':'
	}
	if p.where == inField {
		for len(b) > 0 && b[0] != ':' && p.length <= uint8(len(p.word)) {
			if p.length < uint8(len(p.word)) {
				p.word[p.length] = b[0]
			}
			p.length++
			b = b[1:]
		}
		switch {
		case p.length > uint8(len(p.word)):
			p.where = inComment
		case len(b) > 0:
			p.endField()
			b = b[1:]
		}
	}
	if p.where == behind && len(b) > 0 {
		p.where = inValue
		if b[0] == ' ' {
			b = b[1:]
		}
	}
	if p.where != inValue {
		return
	}
	switch p.field {
	case dataField:
		p.keep(b)
	case eventField:
		// One byte more shows that it is too long.
		p.name = append(p.name, b[:min(len(b), maxName+1-len(p.name))]...)
	case otherField:
	}
}

// keep adds to the event's data.
func (p *Parser) keep(b []byte) {
	if p.long == nil && len(p.data)+len(b) > maxEvent {
		p.long = excerpt.New(maxEvent)
		_, _ = p.long.Write(p.data)
		p.data = nil
	}
	if p.long != nil {
		_, _ = p.long.Write(b)
		return
	}
	p.data = append(p.data, b...)
}

// endField takes note of which field the line is.
func (p *Parser) endField() {
	p.where = behind
	switch string(p.word[:p.length]) {
	case "data":
		p.field = dataField
		if p.hasData {
			p.keep(lineFeed)
		}
		p.hasData = true
	case "event":
		p.field = eventField
		p.name = p.name[:0]
	default:
		p.where = inComment
	}
}

func (p *Parser) endLine(emit func(string, []byte)) {
	p.begun = true
	if p.where == atStart {
		p.amid = false
		p.dispatch(emit)
		return
	}
	if p.where == inField {
		p.endField() // a field without a colon has an empty value
	}
	p.where = atStart
}

// dispatch ends an event.
func (p *Parser) dispatch(emit func(string, []byte)) {
	if p.hasData {
		data := p.data
		switch {
		case p.long != nil:
			data = p.long.JSON()
		case data == nil:
			data = []byte{}
		}
		emit(p.nameString(), data)
	}
	p.name, p.data = p.name[:0], p.data[:0]
	p.hasData, p.long = false, nil
	if cap(p.data) > keepData {
		p.data = nil
	}
}

// nameString is the event's name, made once for each name.
func (p *Parser) nameString() string {
	if len(p.name) == 0 || len(p.name) > maxName {
		return ""
	}
	if name, ok := p.names[string(p.name)]; ok {
		return name
	}
	name := string(p.name)
	if p.names == nil {
		p.names = make(map[string]string)
	}
	if len(p.names) < keepNames {
		p.names[name] = name
	}
	return name
}
