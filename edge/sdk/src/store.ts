/**
 * Opens what a page remembers of a connection: sessionStorage for keys that begin with s, localStorage for the others,
 * or memory where storage fails or is not wanted. Any access may throw. A failure is told once.
 */
export function openStore(prefix: string, failed: () => void) {
  const memory: Record<string, string> = {};
  const state = {
    /** Whether the browser's storage is not wanted. */
    off_: false,
    /** Whether it failed. What it has is still read. */
    broken_: false,
  };
  const area = (key: string): Storage => (/^s/.test(key) ? sessionStorage : localStorage);
  const attempt = <T>(f: () => T): T | undefined => {
    try {
      return state.off_ ? undefined : f();
    } catch {
      if (!state.broken_) setTimeout(failed);
      state.broken_ = true;
      return;
    }
  };
  const get = (key: string): string | undefined => memory[key] ?? attempt(() => area(key)[prefix + key]);
  const set = (key: string, value: string | number) => {
    memory[key] = '' + value;
    attempt(() => (area(key)[prefix + key] = value, delete memory[key]));
  };
  const remove = (key: string) => {
    delete memory[key];
    attempt(() => delete area(key)[prefix + key]);
  };
  const keys = () => Object.keys(memory).concat(
    attempt(() => [localStorage, sessionStorage].flatMap(Object.keys).flatMap((k) => k.split(prefix)[1] ?? [])) ?? [],
  );
  return [get, set, remove, keys, state] as const;
}
