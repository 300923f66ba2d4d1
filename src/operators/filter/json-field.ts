import { tryCall } from '../../protocol/type-guards.js';
import { BACKSLASH, endOfText, Needle, QUOTE, textOf } from './search.js';

/** A value in JSON that is neither an object nor a list. */
export type FieldValue = string | number | boolean | null;

/** Says whether to accept a {@link FieldValue}, whose JSON is in a payload from `from` to `to`. */
export type Accepts = (payload: Uint8Array, from: number, to: number) => boolean;

/** Returns the steps of a path: names, and `[]` for each element of a list. `undefined` if it isn't a path. */
export const stepsOf = (path: string): readonly string[] | undefined =>
  /^(?:[^.[\]]+|\[\])(?:\.[^.[\]]+|\[\])*$/.test(path)
    ? Array.from(path.matchAll(/[^.[\]]+|\[\]/g), ([step]) => step)
    : undefined;

export const scalarOf = (payload: Uint8Array, from: number, to: number): FieldValue => {
  const first = payload[from];
  if (first === QUOTE) return stringOf(payload, from, to);
  if (first === 0x6e) return null;
  return first === 0x74 || (first !== 0x66 && Number(textOf(payload, from, to)));
};

/** Returns a {@link FieldValue} as the payload spells it; a string without quotes and escapes. */
export const writtenAs = (payload: Uint8Array, from: number, to: number): string =>
  payload[from] === QUOTE ? stringOf(payload, from, to) : textOf(payload, from, to);

const stringOf = (payload: Uint8Array, from: number, to: number): string => {
  const text = textOf(payload, from + 1, to - 1);
  return text.includes('\\') ? (tryCall(() => JSON.parse(`"${text}"`) as string) ?? text) : text;
};

/** Rules out texts by their bytes, if they have no backslash. {@link Accepts} decides about the rest. */
export interface QuickAccepts {
  mayHave(payload: Uint8Array, from: number): boolean;
}

/**
 * Creates a function that returns whether the JSON of a payload has an accepted value at a path, as `JSON.parse` reads
 * it. If a payload isn't JSON, it may return either.
 *
 * Most payloads can be refused without parsing: wherever the last name of the path occurs, its value isn't accepted.
 * All others are parsed from the start, and so are those with a backslash, which can hide a name.
 *
 * @param quick - if it's `undefined`, all payloads are parsed, and `accepts` only gets values at the path
 */
export const fieldTest = (steps: readonly string[], accepts: Accepts, quick: QuickAccepts | undefined) => {
  const last = steps.at(-1) as string;
  const quoted = new Needle(new TextEncoder().encode(`"${last}"`));
  // Other names can have different bytes, because invalid UTF-8 decodes to U+FFFD.
  const isPlain = /^[\w-]+$/.test(last);
  const mayMatch = (payload: Uint8Array): boolean => {
    if (quick === undefined || !isPlain || payload.includes(BACKSLASH)) return true;
    let at = 0;
    while ((at = quoted.indexIn(payload, at)) >= 0) {
      at = afterSpace(payload, at + quoted.bytes.length);
      if (payload[at] !== COLON) continue;
      at = afterSpace(payload, at + 1);
      if (payload[at] === QUOTE && !quick.mayHave(payload, at + 1)) continue;
      if (accepts(payload, at, endOfScalar(payload, at))) return true;
    }
    return false;
  };
  return (payload: Uint8Array): boolean => {
    if (!mayMatch(payload)) return false;
    const { found } = new Walk(payload, steps);
    return found.some((from, n) => n % 2 === 0 && accepts(payload, from, found[n + 1] as number));
  };
};

/** Reads the members on a path and skips all others. Ends even if the payload isn't JSON. */
class Walk {
  /** Where each value at the path begins and ends: begin, end, begin, end, … */
  readonly found: number[] = [];
  private readonly payload: Uint8Array;
  private readonly steps: readonly string[];

  constructor(payload: Uint8Array, steps: readonly string[]) {
    this.payload = payload;
    this.steps = steps;
    this.value(afterSpace(payload, 0), 0);
  }

  /** Reads the value at `start`, which is `depth` steps down the path. Returns its end, like all functions below. */
  private value(start: number, depth: number): number {
    const first = this.payload[start];
    const step = this.steps[depth];
    if (step === '[]' ? first === LIST : step !== undefined && first === OBJECT)
      return step === '[]' ? this.elements(start, depth + 1) : this.members(start, step as string, depth + 1);
    const end = endOfValue(this.payload, start);
    if (step === undefined && first !== OBJECT && first !== LIST) this.found.push(start, end);
    return end;
  }

  private elements(start: number, depth: number): number {
    const { payload } = this;
    let at = afterSpace(payload, start + 1);
    if (payload[at] === LIST_END) return at + 1;
    while ((at = afterSpace(payload, this.value(at, depth))) && payload[at] === COMMA) at = afterSpace(payload, at + 1);
    return at + 1;
  }

  private members(start: number, name: string, depth: number): number {
    const { payload, found } = this;
    const before = found.length;
    let at = start;
    do {
      at = afterSpace(payload, at + 1);
      if (payload[at] !== QUOTE) break;
      const end = endOfScalar(payload, at);
      const isOnPath = isName(payload, at, end, name);
      at = afterSpace(payload, afterSpace(payload, end) + 1);
      // If the name occurs more than once, the last one counts.
      if (isOnPath) found.length = before;
      at = afterSpace(payload, isOnPath ? this.value(at, depth) : endOfValue(payload, at));
    } while (payload[at] === COMMA);
    return at + 1;
  }
}

const isName = (payload: Uint8Array, start: number, end: number, name: string): boolean => {
  let isSame = end - start === name.length + 2;
  for (let at = start + 1; at < end - 1; at += 1) {
    const byte = payload[at] as number;
    if (byte === BACKSLASH || byte > 0x7f) return scalarOf(payload, start, end) === name;
    if (isSame && byte !== name.charCodeAt(at - start - 1)) isSame = false;
  }
  return isSame;
};

const endOfValue = (payload: Uint8Array, start: number): number => {
  let at = start;
  let level = 0;
  do {
    const byte = payload[at];
    if (byte === OBJECT || byte === LIST) level += 1;
    else if (level === 0) return endOfScalar(payload, at);
    else if (byte === OBJECT_END || byte === LIST_END) level -= 1;
    at = byte === QUOTE ? endOfText(payload, at) : at + 1;
  } while (level > 0 && at < payload.length);
  return at;
};

/** Returns the end of a text, a number or a word. */
const endOfScalar = (payload: Uint8Array, start: number): number => {
  if (payload[start] === QUOTE) return endOfText(payload, start);
  let at = start;
  for (let byte; (byte = payload[at]) !== undefined && byte > QUOTE && byte !== COMMA; at += 1)
    if ((byte | 0x20) === OBJECT || (byte | 0x20) === OBJECT_END) break;
  return at;
};

const afterSpace = (payload: Uint8Array, start: number): number => {
  let at = start;
  for (let byte; (byte = payload[at]) === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;) at += 1;
  return at;
};

const [COMMA, COLON] = [0x2c, 0x3a];
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];
