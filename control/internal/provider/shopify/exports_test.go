package shopify

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (s *server) runBulk(query string) string {
	s.bulkCalls++
	id := strconv.Itoa(700 + s.bulkCalls)
	var parents, children bytes.Buffer
	to := &children
	if !s.shuffled {
		to = &parents
	}
	if strings.Contains(query, "orders") {
		for n, o := range s.orders {
			head, line, _ := strings.Cut(o, "|")
			fmt.Fprintf(&parents, "{%s}\n", strings.ReplaceAll(head, "\n", ""))
			fmt.Fprintf(to, "%s,\"__parentId\":\"gid://shopify/Order/%d\"}\n", line, n)
		}
	} else {
		ids := make([]int, 0, len(s.products))
		for n := range s.products {
			ids = append(ids, n)
		}
		slices.Sort(ids)
		for _, n := range ids {
			head, variants := s.node(s.products[n])
			fmt.Fprintf(&parents, "{%s}\n", head)
			for _, v := range variants {
				fmt.Fprintf(to, "{%s,\"__parentId\":\"gid://shopify/Product/%d\"}\n", v, n)
			}
		}
	}
	s.files[id] = parents.String()
	if s.shuffled {
		s.files[id] += children.String()
	}
	return fmt.Sprintf(`"bulkOperationRunQuery":{"bulkOperation":{"id":"gid://shopify/BulkOperation/%s",`+
		`"status":"CREATED"},"userErrors":[]}`, id)
}

func (s *server) bulk(id string) string {
	status := "COMPLETED"
	if len(s.statuses) > 0 {
		status, s.statuses = s.statuses[0], s.statuses[1:]
	}
	file, ok := s.files[id]
	if !ok {
		return `"bulkOperation":null`
	}
	url := "null"
	if status == "COMPLETED" && file != "" {
		url = strconv.Quote(s.url + "/files/" + id)
	}
	return fmt.Sprintf(`"bulkOperation":{"id":"x","status":%q,"errorCode":null,"url":%s}`, status, url)
}

func (s *server) file(w http.ResponseWriter, r *http.Request, name string) {
	if r.Header.Get("X-Shopify-Access-Token") != "" || r.Header.Get("Authorization") != "" {
		http.Error(w, "a credential came along", http.StatusTeapot)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if s.noRanges {
		fmt.Fprint(w, s.files[name])
		return
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(s.files[name]))
}
