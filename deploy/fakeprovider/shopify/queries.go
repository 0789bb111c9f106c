package shopify

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/stores"
)

// queries is the root of queries.
func (f *Fake) queries(r call) object {
	v := view{r.store}
	return object{
		"shop": object{
			"name": "Shop " + r.store.ID, "myshopifyDomain": r.store.ID + ".myshopify.com",
			"currencyCode":  Currency,
			"primaryDomain": object{"localization": object{"defaultLocale": Language, "country": nil}},
		},
		"shopLocales": []object{{"locale": Language, "primary": true}},
		"product":     r.byID("Product", stores.Products, v.product),
		"collection":  r.byID("Collection", stores.Categories, v.collection),
		"order":       r.byID("Order", stores.Orders, v.order),
		"products":    v.search(stores.Products, v.product),
		"collections": v.search(stores.Categories, v.collection),
		"orders":      v.search(stores.Orders, v.order),

		"webhookSubscriptions": r.subscriptions(),
		"bulkOperation": resolver(
			func(args map[string]any) (any, error) { return f.bulkByID(r, args["id"]) },
		),
	}
}

// ref reads a global id: its type and number.
func ref(v any) (typename string, id int64, err error) {
	text, _ := v.(string)
	rest, ok := strings.CutPrefix(text, "gid://shopify/")
	typename, digits, slash := strings.Cut(rest, "/")
	id, err = strconv.ParseInt(digits, 10, 64)
	if !ok || !slash || err != nil {
		return "", 0, fmt.Errorf("invalid global id '%s'", text)
	}
	return typename, id, nil
}

// byID answers one entity, null when it is not there. A global id of another type is an error.
func (r call) byID(want, kind string, make func(docs.Doc) object) resolver {
	return func(args map[string]any) (any, error) {
		typename, id, err := ref(args["id"])
		if err != nil {
			return nil, err
		}
		if typename != want {
			return nil, fmt.Errorf("invalid id: gid://shopify/%s/%d is no %s", typename, id, want)
		}
		if d, ok := r.store.Tables[kind].Get(id); ok {
			return make(d), nil
		}
		return nil, nil
	}
}

// search lists the entities of a kind, filtered and sorted by the arguments.
func (v view) search(kind string, make func(docs.Doc) object) connection {
	return func(args map[string]any) ([]entry, error) {
		query, _ := args["query"].(string)
		keep, err := parseSearch(query)
		if err != nil {
			return nil, err
		}
		updatedAt := map[int64]time.Time{}
		ids := v.store.Tables[kind].IDs(func(id int64, updated time.Time) bool {
			updatedAt[id] = updated
			return keep(id, updated)
		})
		if args["sortKey"] != "UPDATED_AT" {
			return v.entries(kind, ids, idKey, make), nil
		}
		slices.SortStableFunc(ids, func(a, b int64) int { return updatedAt[a].Compare(updatedAt[b]) })
		key := func(id int64) string { return fmt.Sprintf("%019d.%019d", updatedAt[id].UnixNano(), id) }
		return v.entries(kind, ids, key, make), nil
	}
}

func idKey(id int64) string { return fmt.Sprintf("%019d", id) }

func (v view) entries(kind string, ids []int64, key func(int64) string, make func(docs.Doc) object) []entry {
	all := []entry{}
	for _, id := range ids {
		all = append(all, entry{key(id), func() object {
			if d, ok := v.store.Tables[kind].Get(id); ok {
				return make(d)
			}
			return nil
		}})
	}
	return all
}

// parseSearch reads the conditions on updated_at and id; other conditions filter nothing.
func parseSearch(query string) (func(id int64, updated time.Time) bool, error) {
	pattern := regexp.MustCompile(`(updated_at|id):\s*(>=|<=|>|<|)\s*['"]?([0-9][^'"\s]*)['"]?`)
	var all []func(int64, time.Time) bool
	for _, c := range pattern.FindAllStringSubmatch(query, -1) {
		name, operator, text := c[1], c[2], c[3]
		var n int64
		var at time.Time
		var err error
		if name == "id" {
			n, err = strconv.ParseInt(text, 10, 64)
		} else if at, err = parseTime(text); err != nil {
			at, err = time.Parse(time.DateOnly, text)
		}
		if err != nil {
			return nil, fmt.Errorf("invalid search field for query: %s", name)
		}
		all = append(all, func(id int64, updated time.Time) bool {
			order := updated.Truncate(time.Second).Compare(at)
			if name == "id" {
				order = int(min(max(id-n, -1), 1))
			}
			return order == 0 && operator != "<" && operator != ">" ||
				order > 0 && strings.HasPrefix(operator, ">") || order < 0 && strings.HasPrefix(operator, "<")
		})
	}
	return func(id int64, updated time.Time) bool {
		return !slices.ContainsFunc(
			all,
			func(holds func(int64, time.Time) bool) bool { return !holds(id, updated) },
		)
	}, nil
}
