import { sha256 } from './sha256.js';

// 32 characters for 5 words.
const base32hex = (words: Iterable<number>): string => {
  let bits = 1n; // keeps leading zeros
  for (const word of words) bits = (bits << 32n) | BigInt(word >>> 0);
  return bits.toString(32).slice(1);
};

/**
 * Returns the id that the service derives from the same parts: the first 20 bytes, in base32hex, of the SHA-256 over
 * prefix and parts, each behind its length in bytes as a 64-bit big-endian number.
 */
export function derive(prefix: string, ...parts: string[]): string {
  const bytes: number[] = [];
  for (const part of [prefix, ...parts]) {
    const text = new TextEncoder().encode(part);
    bytes.push(0, 0, 0, 0, 0, 0, text.length >> 8, text.length, ...text);
  }
  return prefix + '_' + base32hex(sha256(bytes).slice(0, 5));
}

/** Returns the prefix and 160 random bits in the form of a derived id. */
export const random = (prefix: string): string => prefix + base32hex(crypto.getRandomValues(new Uint32Array(5)));
