package shopify

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"storefront.internal/deploy/fakeprovider/docs"
	"storefront.internal/deploy/fakeprovider/stores"
)

// kinds of documents by the type of their gid.
func kindOf(typename string) string {
	return map[string]string{"Product": stores.Products, "Collection": stores.Categories, "Order": stores.Orders}[typename]
}

// queries is the root of what is asked.
func (f *Fake) queries(r call) object {
	v := view{r.store}
	return object{
		"__typename": "Query", "shop": v.shop(), "productsCount": count(len(r.store.Tables[stores.Products].IDs(nil))),
		"shopLocales": []object{{"__typename": "ShopLocale", "locale": Language, "name": "English", "primary": true, "published": true}},
		"product":     r.byID("Product", v.product), "collection": r.byID("Collection", v.collection), "order": r.byID("Order", v.order),
		"productVariant": computed(func(args map[string]any) (any, error) { return r.variant(args["id"]) }),
		"node":           computed(func(args map[string]any) (any, error) { return r.node(args["id"]) }),
		"nodes":          computed(r.nodes),
		"products":       v.search("Product", v.product).field(),
		"collections":    v.search("Collection", v.collection).field(),
		"orders":         v.search("Order", v.order).field(),

		"webhookSubscription":  computed(func(args map[string]any) (any, error) { return f.subscription(r, args) }),
		"webhookSubscriptions": f.subscriptions(r).field(),
		"bulkOperation":        computed(func(args map[string]any) (any, error) { return f.bulkByID(r, args["id"]) }),
		"bulkOperations":       f.bulkOperations(r).field(),
		"currentBulkOperation": computed(func(map[string]any) (any, error) { return f.currentBulk(r) }),
		"currentAppInstallation": object{
			"__typename": "AppInstallation", "id": gid("AppInstallation", 1), "launchUrl": v.site() + "/admin/apps/demo",
			"accessScopes": []object{
				{"__typename": "AccessScope", "handle": "read_products", "description": "Read products"},
				{"__typename": "AccessScope", "handle": "read_orders", "description": "Read orders"},
			},
		},
	}
}

func (v view) shop() object {
	host := v.store.ID + ".myshopify.com"
	place := object{"__typename": "ShopAddress", "country": "United States", "countryCodeV2": "US", "city": "Boston", "phone": "+1 555 0100"}
	return object{
		"__typename": "Shop", "id": gid("Shop", 1), "name": "Shop " + v.store.ID, "myshopifyDomain": host, "url": v.site(), "currencyCode": Currency,
		"primaryDomain": object{
			"__typename": "Domain", "id": gid("Domain", 1), "host": host, "url": v.site(), "sslEnabled": true,
			"localization": object{"__typename": "DomainLocalization", "defaultLocale": Language, "alternateLocales": []string{}, "country": nil},
		},
		"ianaTimezone": "America/New_York", "email": "merchant@mail.example", "contactEmail": "merchant@mail.example", "billingAddress": place,
		"shopAddress": place, "taxesIncluded": false, "createdAt": "2024-01-01T00:00:00Z", "updatedAt": "2024-01-01T00:00:00Z",
		"plan": object{"__typename": "ShopPlan", "displayName": "Basic", "publicDisplayName": "Basic", "partnerDevelopment": false, "shopifyPlus": false},
	}
}

// ref reads a gid: its type and number.
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

// byID answers one entity, null when it is not there; a gid of another type is an error.
func (r call) byID(want string, make func(docs.Doc) object) computed {
	return func(args map[string]any) (any, error) {
		typename, id, err := ref(args["id"])
		if err != nil {
			return nil, err
		}
		if typename != want {
			return nil, fmt.Errorf("invalid id: gid://shopify/%s/%d is no %s", typename, id, want)
		}
		if d, ok := r.store.Tables[kindOf(want)].Get(id); ok {
			return make(d), nil
		}
		return nil, nil
	}
}

func (r call) variant(id any) (any, error) {
	_, n, err := ref(id)
	if err != nil {
		return nil, err
	}
	v := view{r.store}
	if d, ok := r.store.Tables[stores.Products].Get(n / 100); ok {
		return v.variantOf(d, n), nil
	}
	return nil, nil
}

func (r call) node(id any) (any, error) {
	typename, _, err := ref(id)
	if err != nil {
		return nil, err
	}
	v := view{r.store}
	args := map[string]any{"id": id}
	switch typename {
	case "Product":
		return r.byID(typename, v.product)(args)
	case "Collection":
		return r.byID(typename, v.collection)(args)
	case "Order":
		return r.byID(typename, v.order)(args)
	case "ProductVariant":
		return r.variant(id)
	case "BulkOperation":
		return r.fake.bulkByID(r, id)
	case "WebhookSubscription":
		return r.fake.subscription(r, args)
	}
	return nil, nil
}

func (r call) nodes(args map[string]any) (any, error) {
	ids, _ := args["ids"].([]any)
	if len(ids) > largestFirst {
		return nil, errors.New("the input array size is greater than the maximum allowed")
	}
	out := make([]object, len(ids))
	for i, id := range ids {
		one, err := r.node(id)
		if err != nil {
			return nil, err
		}
		out[i], _ = one.(object)
	}
	return out, nil
}

// search is a connection over the entities of a type, filtered by the query that the provider's search takes.
func (v view) search(typename string, make func(docs.Doc) object) connection {
	return connection{typename, func(args map[string]any) ([]entry, error) {
		query, _ := args["query"].(string)
		keep, err := parseSearch(query)
		if err != nil {
			return nil, err
		}
		table := v.store.Tables[kindOf(typename)]
		if key, _ := args["sortKey"].(string); key == "UPDATED_AT" {
			at := map[int64]time.Time{}
			ids := table.IDs(func(id int64, updated time.Time) bool { at[id] = updated; return keep(id, updated) })
			slices.SortStableFunc(ids, func(a, b int64) int { return at[a].Compare(at[b]) })
			return v.keyed(kindOf(typename), ids, func(id int64) string { return fmt.Sprintf("%019d.%019d", at[id].UnixNano(), id) }, make), nil
		}
		return v.entries(kindOf(typename), table.IDs(keep), make), nil
	}}
}

func (v view) entries(kind string, ids []int64, make func(docs.Doc) object) []entry {
	return v.keyed(kind, ids, func(id int64) string { return fmt.Sprintf("%019d", id) }, make)
}

func (v view) keyed(kind string, ids []int64, key func(int64) string, make func(docs.Doc) object) []entry {
	table := v.store.Tables[kind]
	all := []entry{}
	for _, id := range ids {
		all = append(all, entry{key(id), func() object {
			d, ok := table.Get(id)
			if !ok {
				return nil // gone since it was listed
			}
			return make(d)
		}})
	}
	return all
}

// parseSearch reads the conditions on updated_at and id; others mean nothing here and filter nothing.
func parseSearch(query string) (func(id int64, updated time.Time) bool, error) {
	conditions := regexp.MustCompile(`(updated_at|id):\s*(>=|<=|>|<|)\s*['"]?([0-9][^'"\s]*)['"]?`).FindAllStringSubmatch(query, -1)
	var all []func(int64, time.Time) bool
	for _, c := range conditions {
		name, how, text := c[1], c[2], c[3]
		var n int64
		var at time.Time
		var err error
		if name == "id" {
			n, err = strconv.ParseInt(text, 10, 64)
		} else if at, err = parseStamp(text); err != nil {
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
			return order == 0 && how != "<" && how != ">" || order > 0 && strings.HasPrefix(how, ">") || order < 0 && strings.HasPrefix(how, "<")
		})
	}
	return func(id int64, updated time.Time) bool {
		for _, holds := range all {
			if !holds(id, updated) {
				return false
			}
		}
		return true
	}, nil
}
