package shopify

// The queries of this package. The sizes of nested connections keep each query below 1,000 points, the limit
// for one query.
const (
	productFields = `id title descriptionHtml handle vendor status tags updatedAt onlineStoreUrl`
	variantFields = `id sku price compareAtPrice inventoryPolicy inventoryQuantity availableForSale
 inventoryItem { tracked } selectedOptions { name value }`
	mediaFields      = `id alt mediaContentType ... on MediaImage { image { url altText } }`
	collectionFields = `id title handle updatedAt`
	orderFields      = `id name createdAt updatedAt cancelledAt closed currencyCode displayFinancialStatus
 totalPriceSet { shopMoney { amount currencyCode } } email phone customer { id displayName email phone }`
	lineFields = `id quantity product { id } variant { id }
 originalUnitPriceSet { shopMoney { amount currencyCode } }`

	pageInfo       = ` pageInfo { hasNextPage endCursor } `
	variantPage    = ` { nodes { ` + variantFields + ` }` + pageInfo + `}`
	mediaPage      = ` { nodes { ` + mediaFields + ` }` + pageInfo + `}`
	collectionPage = ` { nodes { ` + collectionFields + ` }` + pageInfo + `}`
	linePage       = ` { nodes { ` + lineFields + ` }` + pageInfo + `}`

	queryShop = `query StorefrontShop {
 shop { name myshopifyDomain currencyCode primaryDomain { localization { defaultLocale country } } } }`
	queryLocales = `query StorefrontLocales { shopLocales { locale primary } }`

	queryProduct = `query StorefrontProduct($id: ID!) { product(id: $id) { ` + productFields + `
 variants(first: 100)` + variantPage + `
 media(first: 50)` + mediaPage + `
 collections(first: 100)` + collectionPage + ` } }`
	queryVariants = `query StorefrontVariants($id: ID!, $after: String) {
 product(id: $id) { id variants(first: 250, after: $after)` + variantPage + ` } }`
	queryMedia = `query StorefrontMedia($id: ID!, $after: String) {
 product(id: $id) { id media(first: 250, after: $after)` + mediaPage + ` } }`
	queryMemberships = `query StorefrontMemberships($id: ID!, $after: String) {
 product(id: $id) { id collections(first: 250, after: $after)` + collectionPage + ` } }`
	queryProducts = `query StorefrontProducts($after: String, $query: String) {
 products(first: 10, after: $after, sortKey: UPDATED_AT, query: $query) { nodes { ` + productFields + `
 variants(first: 20)` + variantPage + `
 media(first: 10)` + mediaPage + `
 collections(first: 10)` + collectionPage + ` }` + pageInfo + `} }`

	queryCollection = `query StorefrontCollection($id: ID!) {
 collection(id: $id) { ` + collectionFields + ` } }`
	queryCollections = `query StorefrontCollections($after: String, $query: String) {
 collections(first: 200, after: $after, sortKey: ID, query: $query)` + collectionPage + ` }`

	queryOrder = `query StorefrontOrder($id: ID!) { order(id: $id) { ` + orderFields + `
 lineItems(first: 100)` + linePage + ` } }`
	queryLines = `query StorefrontLines($id: ID!, $after: String) {
 order(id: $id) { id lineItems(first: 150, after: $after)` + linePage + ` } }`
	queryOrders = `query StorefrontOrders($after: String, $query: String) {
 orders(first: 10, after: $after, sortKey: UPDATED_AT, query: $query) { nodes { ` + orderFields + `
 lineItems(first: 15)` + linePage + ` }` + pageInfo + `} }`

	bulkProducts = `{ products { edges { node { ` + productFields + `
 variants { edges { node { ` + variantFields + ` } } }
 media { edges { node { ` + mediaFields + ` } } }
 collections { edges { node { ` + collectionFields + ` } } } } } } }`
	bulkOrders = `{ orders { edges { node { ` + orderFields + `
 lineItems { edges { node { ` + lineFields + ` } } } } } } }`

	mutationRunBulk = `mutation StorefrontRunBulk($query: String!) {
 bulkOperationRunQuery(query: $query, groupObjects: true) {
 bulkOperation { id status } userErrors { field message code } } }`
	queryBulk = `query StorefrontBulk($id: ID!) { bulkOperation(id: $id) { id status errorCode url } }`

	queryWebhooks = `query StorefrontHooks($after: String) {
 webhookSubscriptions(first: 200, after: $after) { nodes { id topic uri }` + pageInfo + `} }`
	mutationSubscribe = `mutation StorefrontSubscribe($topic: WebhookSubscriptionTopic!, $uri: String!) {
 webhookSubscriptionCreate(topic: $topic, webhookSubscription: { uri: $uri, format: JSON }) {
 webhookSubscription { id topic uri } userErrors { field message } } }`
	mutationUnsubscribe = `mutation StorefrontUnsubscribe($id: ID!) {
 webhookSubscriptionDelete(id: $id) { deletedWebhookSubscriptionId userErrors { field message } } }`
)
