import { sha256 } from './sha256';

// derive returns the id that the service derives from the same parts (shared/ident.Derive): the first 20 bytes of
// the SHA-256 over prefix and parts, each behind its length in bytes as a 64-bit big-endian number.
export function derive(prefix: string, ...parts: string[]): string {
  const bytes: number[] = [];
  for (const part of [prefix, ...parts]) {
    const text = new TextEncoder().encode(part);
    bytes.push(0, 0, 0, 0, 0, 0, text.length >> 8, text.length & 255, ...text);
  }
  let id = prefix + '_', held = 0, bits = 0;
  for (const byte of sha256(new Uint8Array(bytes)).subarray(0, 20)) {
    held = ((held & 31) << 8) | byte;
    for (bits += 8; bits > 4; ) id += ((held >> (bits -= 5)) & 31).toString(32);
  }
  return id;
}

// random returns an id of 128 random bits.
export function random(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return prefix + btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').slice(0, 22);
}
