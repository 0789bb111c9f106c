package load

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Batch is a request to record signals that one client sends again and again, each time with new signal ids.
// Its bytes are changed in place, so that sending costs next to nothing.
type Batch struct {
	request    []byte
	ids        []int // where the digits of the ids begin
	next       uint64
	resend     int // how many ids of each request are those of the one before
	duplicates int
}

// Shopper is the connection and the Decision of a Batch.
type Shopper struct {
	Host, Connection, Key string
	Decision, Item        string
	Signals               int // in a request
	Resend                int // of them, ids that were sent before
}

const digits = 12

// NewBatch makes the request. The ids of different clients and runs differ by unique.
func NewBatch(s Shopper, unique string, now time.Time) *Batch {
	var body bytes.Buffer
	body.WriteString(`{"signals":[`)
	for i := range s.Signals {
		if i > 0 {
			body.WriteByte(',')
		}
		s.element(&body, i, unique, now)
	}
	body.WriteString(`]}`)
	b := &Batch{resend: s.Resend, next: 1}
	b.request = fmt.Appendf(nil,
		"POST /v1/connections/%s/storefront-signals HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer "+
			"%s\r\nContent-Type: application/json\r\n"+
			"User-Agent: Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Mobile "+
			"Safari/537.36\r\nAccept-Language: es-AR,es;q=0.9\r\nOrigin: https://shop.example\r\n"+
			"Referer: https://shop.example/products/remera\r\nContent-Length: %d\r\n\r\n%s", s.Connection,
		s.Host, s.Key, body.Len(), body.Bytes())
	mark := []byte(`"sig_` + unique)
	for at := 0; ; {
		i := bytes.Index(b.request[at:], mark)
		if i < 0 {
			return b
		}
		at += i + len(mark)
		b.ids = append(b.ids, at)
	}
}

// element is one signal of about 480 bytes: of ten, six impressions, two clicks, one cart change, one
// purchase.
func (s Shopper) element(out *bytes.Buffer, i int, unique string, now time.Time) {
	kind := [...]string{
		`"impression","position":3`, `"click","position":3`, `"impression","position":1`,
		`"impression","position":2`, `"add_to_cart","quantity":2`,
		`"impression","position":4`, `"click","position":5`, `"impression","position":5`,
		`"purchase","quantity":1,"order_external_id":"1000234"`, `"impression","position":6`,
	}[i%10]
	item := ""
	if !strings.HasPrefix(kind, `"impression"`) { // an impression is of the whole recommendation
		item = `"item_id":"` + s.Item + `",`
	}
	fmt.Fprintf(out, `{"signal_id":"sig_%s%0*d","type":%s,"occurred_at":"%s","decision_id":"%s",%s`+
		`"visitor":{"visitor_id":"vis_4c8f2a9e1b7d","session_id":"ses_90be11d2c3a4"},`+
		`"client":{"page_url":"https://shop.example/products/remera-%d?utm_source=mail",`+
		`"languages":["es-AR","es","en"],"timezone":"America/Argentina/Buenos_Aires",`+
		`"viewport":{"width":390,"height":844,"pixel_ratio":3}}}`,
		unique, digits, 0, kind, now.UTC().Format("2006-01-02T15:04:05.000Z"), s.Decision, item, i)
}

// Next is the request with new ids, except for the resent ones, which are the newest of the request before.
func (b *Batch) Next() []byte {
	first := b.next
	for i, at := range b.ids {
		if i < b.resend && first > 1 {
			put(b.request[at:at+digits], first-1-uint64(i))
			continue
		}
		put(b.request[at:at+digits], b.next)
		b.next++
	}
	b.duplicates = 0
	if first > 1 {
		b.duplicates = b.resend
	}
	return b.request
}

// Duplicates is how many signals of the last request had been sent before.
func (b *Batch) Duplicates() int { return b.duplicates }

func put(dst []byte, n uint64) {
	var buf [20]byte
	text := strconv.AppendUint(buf[:0], n, 10)
	for i := range dst {
		dst[i] = '0'
	}
	copy(dst[len(dst)-len(text):], text)
}

// FirstID is the id of the first signal of a request.
func FirstID(request []byte) string {
	_, rest, _ := bytes.Cut(request, []byte(`"signal_id":"`))
	id, _, _ := bytes.Cut(rest, []byte{'"'})
	return string(id)
}
