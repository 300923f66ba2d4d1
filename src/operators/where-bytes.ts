import type { Observable } from 'rxjs';
import { decodeUtf8, isNodeBuffer } from '../protocol/frame.js';
import { isBytes, isText } from '../protocol/type-guards.js';
import { invalidOption } from '../protocol/validate.js';
import { wherePayload } from './items/where-payload.js';

/**
 * Emits the frames whose bytes contain one of the needles, and everything that isn't a frame.
 *
 * It's a cheap filter before {@link decodeWith}: it creates no text and no object. It compares bytes, so `0xAB` doesn't
 * match `0xab`, and what JSON escapes (`"`, `\`, control characters) must be escaped in the needle. A frame also passes
 * if another field contains the needle, so check the decoded value. Completes and errors with the source. Memory: none.
 * ```ts
 * // source               --{"to":"a"}--{"to":"b"}--opened--{"to":"a"}--|
 * // whereBytes('"a"')    --{"to":"a"}--------------opened--{"to":"a"}--|
 * ```
 *
 * @param needles - texts, encoded as UTF-8, or bytes; at least one, and none empty
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { from } from 'rxjs';
 * import { Frame, whereBytes } from 'rx-trade-feed';
 *
 * const frame = (text: string) =>
 *   new Frame('raw', Buffer.from(text), false, Date.now(), 1);
 *
 * from([frame('{"to":"0xa1"}'), frame('{"to":"0xb2"}')])
 *   .pipe(whereBytes('"0xb2"', '"0xc3"'))
 *   .subscribe((each) => console.log(each.text())); // {"to":"0xb2"}
 * ```
 */
export const whereBytes = (
  ...needles: readonly (string | Uint8Array)[]
): (<E>(source: Observable<E>) => Observable<E>) => {
  if (needles.length === 0 || !needles.every(isNeedle)) throw invalidOption('needles', allowed);
  const encoder = new TextEncoder();
  const bytes = needles.map((needle) => (isText(needle) ? encoder.encode(needle) : new Uint8Array(needle)));
  // Search short needles separately, because the shortest one limits how far the search can skip ahead.
  const groups = [bytes.filter(isLong), bytes.filter((each) => !isLong(each))].filter(({ length }) => length > 0);
  const searches = groups.map((group) => (group.length > 1 ? new Needles(group) : new Needle(group[0] as Uint8Array)));
  return wherePayload((payload) => searches.some((search) => search.isIn(payload)));
};

const isLong = ({ length }: Uint8Array): boolean => length >= 8;

const allowed = 'texts or byte arrays to search for, at least one, none of them empty';

const isNeedle = (needle: unknown): boolean => (isText(needle) || isBytes(needle)) && needle.length > 0;

// Finds bytes in the payload of a frame. A Buffer's `indexOf` of one byte is native and takes 10 ns, less than a loop
// over 15 bytes. In a browser, a relay emits plain byte arrays, which have the same method.

export const textOf = (bytes: Uint8Array, from: number, to: number): string => {
  // If a payload is cut off, the end of a text can come before its start.
  if (from >= to) return '';
  return isNodeBuffer(bytes) ? bytes.utf8Slice(from, to) : decodeUtf8(bytes.subarray(from, to));
};

/** Returns one character per byte, as a key for a `Set`. */
const keyOf = (bytes: Uint8Array, from: number, to: number): string =>
  isNodeBuffer(bytes) ? bytes.latin1Slice(from, to) : bytes.subarray(from, to).reduce(addCharacter, '');
const addCharacter = (text: string, byte: number): string => text + String.fromCharCode(byte);

/** How many bytes of a payload show which byte of a needle is rarest. */
const sampleBytes = 4_096;

export class Needle {
  readonly bytes: Uint8Array;
  /** The index of the byte that was rarest in a payload. The search stops at each place where the payload has it. */
  private rarestAt = 0;
  private searches = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  isIn(payload: Uint8Array): boolean {
    return this.indexIn(payload, 0) >= 0;
  }

  /** Returns the first index in a payload at or after `from`; -1 if there is none. */
  indexIn(payload: Uint8Array, from: number): number {
    // At searches 1, 2, 4, 8, …, because the first payloads may differ from all others.
    if (((this.searches += 1) & (this.searches - 1)) === 0) this.learn(payload);
    const { bytes, rarestAt } = this;
    const rarest = bytes[rarestAt] as number;
    let at = from + rarestAt;
    for (let tries = 0; (at = payload.indexOf(rarest, at)) >= 0; tries += 1, at += 1) {
      if (alike(payload, bytes, at - rarestAt) === bytes.length) return at - rarestAt;
      // The byte is frequent here after all. This search takes 90 ns, but doesn't stop at each of them.
      if (tries === 8 && isNodeBuffer(payload)) return payload.indexOf(bytes, at - rarestAt + 1);
    }
    return -1;
  }

  private learn(payload: Uint8Array): void {
    const counts = new Uint32Array(256);
    for (const byte of payload.subarray(0, sampleBytes)) counts[byte] = (counts[byte] as number) + 1;
    const count = (n: number) => counts[this.bytes[n] as number] as number;
    for (let n = 0; n < this.bytes.length; n += 1) if (count(n) < count(this.rarestAt)) this.rarestAt = n;
  }
}

/** Returns how many bytes of a needle the payload has at a place. */
const alike = (payload: Uint8Array, needle: Uint8Array, at: number): number => {
  let n = 0;
  while (n < needle.length && payload[at + n] === needle[n]) n += 1;
  return n;
};

/** Sorts bytes, and removes those that begin with others: they follow right after them. */
const sortedWithoutLonger = (needles: Uint8Array[]): Uint8Array[] => {
  needles.sort((one, other) => {
    const n = alike(one, other, 0);
    return (one[n] ?? -1) - (other[n] ?? -1);
  });
  const kept: Uint8Array[] = [];
  for (const needle of needles) {
    const last = kept.at(-1);
    if (last === undefined || alike(needle, last, 0) < last.length) kept.push(needle);
  }
  return kept;
};

/**
 * Finds many needles in one pass (Wu and Manber, 1994). A window slides over the payload, and its last bytes say how
 * far it can skip without missing a needle. If it can't skip, its bytes lead to the needles that may begin here.
 */
class Needles {
  private readonly width: number;
  /** How many bytes at the end of the window decide how far it skips. */
  private readonly block: number;
  private readonly shifts: Uint8Array;
  /** The needles by their first bytes, in order. None of them begins with another one, which would find it first. */
  private readonly byPrefix = new Map<string, Uint8Array[]>();

  constructor(needles: readonly Uint8Array[]) {
    this.width = needles.reduce((least, { length }) => Math.min(least, length), 255);
    this.block = Math.min(4, this.width);
    this.shifts = new Uint8Array(1 << 16).fill(this.width - this.block + 1);
    for (const bytes of needles) {
      const prefix = keyOf(bytes, 0, this.width);
      const known = this.byPrefix.get(prefix);
      if (known === undefined) this.byPrefix.set(prefix, [bytes]);
      else known.push(bytes);
      for (let end = this.block; end <= this.width; end += 1) {
        const hash = this.hash(bytes, end);
        this.shifts[hash] = Math.min(this.shifts[hash] as number, this.width - end);
      }
    }
    for (const [prefix, known] of this.byPrefix)
      if (known.length > 1) this.byPrefix.set(prefix, sortedWithoutLonger(known));
  }

  isIn(payload: Uint8Array): boolean {
    let end = this.width;
    while (end <= payload.length) {
      const shift = this.shifts[this.hash(payload, end)] as number;
      if (shift === 0 && this.isAt(payload, end - this.width)) return true;
      end += shift || 1;
    }
    return false;
  }

  private isAt(payload: Uint8Array, at: number): boolean {
    const needles = this.byPrefix.get(keyOf(payload, at, at + this.width)) ?? [];
    let [from, to] = [0, needles.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const needle = needles[middle] as Uint8Array;
      const n = alike(payload, needle, at);
      if (n === needle.length) return true;
      if ((payload[at + n] ?? -1) < (needle[n] as number)) to = middle;
      else from = middle + 1;
    }
    return false;
  }

  /** Returns a number below 2^16 for the block of bytes before `end`. */
  private hash(bytes: Uint8Array, end: number): number {
    let hash = 0;
    for (let n = end - this.block; n < end; n += 1) hash = Math.imul(hash, 0x9e37) + (bytes[n] as number);
    return (hash ^ (hash >>> 16)) & 0xffff;
  }
}

/** Rules out most texts that aren't in a list, by their last bytes, before anybody creates a string. */
export class Endings {
  /** A filter like Bloom's: 1 at the hash of each listed text's last bytes, and at 0 for letters beyond ASCII. */
  private readonly hashes: Uint8Array;
  /** The length of the listed texts; -1 if they have several, or letters beyond ASCII. */
  private readonly length: number;

  constructor(texts: readonly string[]) {
    this.hashes = new Uint8Array(2 ** Math.ceil(Math.log2(256 + texts.length * 16))).fill(1, 0, 1);
    const encoder = new TextEncoder();
    for (const text of texts) {
      const bytes = encoder.encode(text);
      this.hashes[this.hash(bytes, 0, bytes.length)] = 1;
    }
    const [length = -1, ...others] = new Set(texts.map((text) => (/^[\0-\x7f]*$/.test(text) ? text.length : -1)));
    this.length = others.length > 0 ? -1 : length;
  }

  /**
   * Returns `false` only if a text in JSON, without escapes, is no listed text, not even in other upper or lower case.
   *
   * @param from - where it begins, after the quote
   */
  mayHave(payload: Uint8Array, from: number): boolean {
    // Searching the end takes 35 ns. If the text ends before this quote, it's too short, and its bytes don't matter.
    const end = from + this.length;
    const to = this.length >= 0 && payload[end] === QUOTE ? end : endOfText(payload, from - 1) - 1;
    return this.hashes[this.hash(payload, from, to)] === 1;
  }

  private hash(bytes: Uint8Array, from: number, to: number): number {
    let hash = 0;
    for (let at = Math.max(from, to - 8); at < to; at += 1) {
      const byte = bytes[at] as number;
      // The same letter can have other bytes, in another case or as invalid UTF-8.
      if (byte > 0x7f) return 0;
      hash = Math.imul(hash ^ (byte | 0x20), 0x0100_0193);
    }
    return (hash ^ (hash >>> 15)) & (this.hashes.length - 1);
  }
}

/** Returns the end of the text in JSON that begins with the quote at `start`. */
export const endOfText = (payload: Uint8Array, start: number): number => {
  let at = start;
  let before;
  do {
    at = payload.indexOf(QUOTE, at + 1);
    if (at < 0) return payload.length;
    before = at - 1;
    while (payload[before] === BACKSLASH) before -= 1;
  } while ((at - before) % 2 === 0);
  return at + 1;
};

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
