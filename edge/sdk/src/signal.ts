// Fields of a signal beside those that every signal has.
export interface Fields {
  item_id?: string;
  variant_id?: string;
  position?: number;
  quantity?: number;
  order_external_id?: string;
}
