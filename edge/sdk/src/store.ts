// Store is localStorage or sessionStorage, or memory where that fails or is not wanted. Any access may throw.
export interface Store {
  /** Whether the browser's storage is wanted. */
  on_: boolean;
  get_(key: string): string | null;
  /** Reports whether the value outlives the page. */
  set_(key: string, value: string): boolean;
  remove_(key: string): void;
  keys_(): string[];
}

export function openStore(name: 'localStorage' | 'sessionStorage', on: boolean, failed: () => void): Store {
  const memory = new Map<string, string>();
  const attempt = <T>(f: (s: Storage) => T): T | undefined => {
    try {
      if (store.on_) return f(globalThis[name]);
    } catch {}
    return;
  };
  const store: Store = {
    on_: on,
    get_: (key) => memory.get(key) ?? attempt((s) => s.getItem(key)) ?? null,
    set_(key, value) {
      memory.delete(key);
      if (attempt((s) => (s.setItem(key, value), 1))) return true;
      memory.set(key, value);
      if (store.on_) failed();
      return false;
    },
    remove_(key) {
      memory.delete(key);
      attempt((s) => s.removeItem(key));
    },
    keys_: () => [...memory.keys(), ...(attempt((s) => Object.keys(s)) ?? [])],
  };
  return store;
}
