package shopify

// The queries of this package. The sizes of nested connections keep each below 1,000 points, the most that one may cost.
const (
	productFields = `id title descriptionHtml handle vendor status tags updatedAt onlineStoreUrl`
	variantFields = `id sku price compareAtPrice inventoryPolicy inventoryQuantity availableForSale inventoryItem { tracked } selectedOptions { name value }`
	mediaFields   = `id alt mediaContentType ... on MediaImage { image { url altText } }`
	collFields    = `id title handle updatedAt`
	orderFields   = `id name createdAt updatedAt cancelledAt closed currencyCode displayFinancialStatus totalPriceSet { shopMoney { amount currencyCode } }
 email phone customer { id displayName email phone }`
	lineFields = `id quantity product { id } variant { id } originalUnitPriceSet { shopMoney { amount currencyCode } }`
	more       = `pageInfo { hasNextPage endCursor }`

	queryShop    = `query StorefrontShop { shop { name myshopifyDomain currencyCode primaryDomain { localization { defaultLocale country } } } }`
	queryLocales = `query StorefrontLocales { shopLocales { locale primary } }`

	queryProduct = `query StorefrontProduct($id: ID!) { product(id: $id) { ` + productFields + `
 variants(first: 100) { nodes { ` + variantFields + ` } ` + more + ` }
 media(first: 50) { nodes { ` + mediaFields + ` } ` + more + ` }
 collections(first: 100) { nodes { ` + collFields + ` } ` + more + ` } } }`
	queryVariants    = `query StorefrontVariants($id: ID!, $after: String) { product(id: $id) { id variants(first: 250, after: $after) { nodes { ` + variantFields + ` } ` + more + ` } } }`
	queryMedia       = `query StorefrontMedia($id: ID!, $after: String) { product(id: $id) { id media(first: 250, after: $after) { nodes { ` + mediaFields + ` } ` + more + ` } } }`
	queryMemberships = `query StorefrontMemberships($id: ID!, $after: String) { product(id: $id) { id collections(first: 250, after: $after) { nodes { ` + collFields + ` } ` + more + ` } } }`
	queryProducts    = `query StorefrontProducts($after: String, $query: String) { products(first: 10, after: $after, sortKey: UPDATED_AT, query: $query) { nodes { ` + productFields + `
 variants(first: 20) { nodes { ` + variantFields + ` } ` + more + ` }
 media(first: 10) { nodes { ` + mediaFields + ` } ` + more + ` }
 collections(first: 10) { nodes { ` + collFields + ` } ` + more + ` } } ` + more + ` } }`

	queryCollection  = `query StorefrontCollection($id: ID!) { collection(id: $id) { ` + collFields + ` } }`
	queryCollections = `query StorefrontCollections($after: String, $query: String) { collections(first: 200, after: $after, sortKey: ID, query: $query) { nodes { ` + collFields + ` } ` + more + ` } }`

	queryOrder = `query StorefrontOrder($id: ID!) { order(id: $id) { ` + orderFields + `
 lineItems(first: 100) { nodes { ` + lineFields + ` } ` + more + ` } } }`
	queryLines  = `query StorefrontLines($id: ID!, $after: String) { order(id: $id) { id lineItems(first: 150, after: $after) { nodes { ` + lineFields + ` } ` + more + ` } } }`
	queryOrders = `query StorefrontOrders($after: String, $query: String) { orders(first: 10, after: $after, sortKey: UPDATED_AT, query: $query) { nodes { ` + orderFields + `
 lineItems(first: 15) { nodes { ` + lineFields + ` } ` + more + ` } } ` + more + ` } }`

	bulkProducts = `{ products { edges { node { ` + productFields + ` variants { edges { node { ` + variantFields + ` } } }
 media { edges { node { ` + mediaFields + ` } } } collections { edges { node { ` + collFields + ` } } } } } } }`
	bulkOrders = `{ orders { edges { node { ` + orderFields + ` lineItems { edges { node { ` + lineFields + ` } } } } } } }`

	runBulk    = `mutation StorefrontRunBulk($query: String!) { bulkOperationRunQuery(query: $query, groupObjects: true) { bulkOperation { id status } userErrors { field message code } } }`
	queryBulk  = `query StorefrontBulk($id: ID!) { bulkOperation(id: $id) { id status errorCode url } }`
	queryHooks = `query StorefrontHooks($after: String) { webhookSubscriptions(first: 200, after: $after) { nodes { id topic uri } ` + more + ` } }`
	createHook = `mutation StorefrontSubscribe($topic: WebhookSubscriptionTopic!, $uri: String!) { webhookSubscriptionCreate(topic: $topic, webhookSubscription: { uri: $uri, format: JSON }) {
 webhookSubscription { id topic uri } userErrors { field message } } }`
	deleteHook = `mutation StorefrontUnsubscribe($id: ID!) { webhookSubscriptionDelete(id: $id) { deletedWebhookSubscriptionId userErrors { field message } } }`
)
