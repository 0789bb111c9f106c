// Store is localStorage or sessionStorage under the prefix of a connection, or memory where that fails or is not
// wanted. Any access may throw.
export interface Store {
  /** Whether the browser's storage is wanted. */
  on_: boolean;
  /** Whether it failed, which is told once. */
  broken_: boolean;
  get_(key: string): string | undefined;
  set_(key: string, value: string | number): void;
  remove_(key: string): void;
  keys_(): string[];
}

export function openStore(name: 'localStorage' | 'sessionStorage', prefix: string, failed: () => void): Store {
  const memory: Record<string, string> = {};
  const attempt = <T>(f: (s: Storage) => T): T | undefined => {
    try {
      if (store.on_) return f(globalThis[name]);
    } catch {
      if (!store.broken_) setTimeout(failed);
      store.broken_ = true;
      return;
    }
  };
  const store: Store = {
    on_: true,
    broken_: false,
    get_: (key) => memory[key] ?? attempt((s) => s[prefix + key]),
    set_(key, value) {
      memory[key] = '' + value;
      attempt((s) => (s[prefix + key] = value, delete memory[key]));
    },
    remove_(key) {
      delete memory[key];
      attempt((s) => delete s[prefix + key]);
    },
    keys_: () =>
      Object.keys(memory).concat(attempt((s) => Object.keys(s).flatMap((k) => k.split(prefix)[1] ?? [])) ?? []),
  };
  return store;
}
