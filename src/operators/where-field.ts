import type { Observable } from 'rxjs';
import { isText, tryCall } from '../protocol/type-guards.js';
import { aBoolean, aFunction, checkRequired, invalidOption, type Rule, validated } from '../protocol/validate.js';
import { wherePayload } from './items/where-payload.js';
import { BACKSLASH, endOfText, Endings, Needle, QUOTE, textOf } from './where-bytes.js';

/** A value in JSON that is neither an object nor a list. */
export type FieldValue = string | number | boolean | null;

/** The options of {@link whereField}. */
export interface WhereFieldOptions {
  /** Treats `0xAB` and `0xab` as the same text, for hex addresses. Not with a function. @defaultValue `false` */
  readonly ignoreCase?: boolean | undefined;
}

/** What {@link whereField} accepts: a value, several values, a set that may change, or a function of the text. */
export type AcceptedValues = FieldValue | readonly FieldValue[] | ReadonlySet<FieldValue> | ((text: string) => boolean);

/**
 * Emits the frames whose JSON has an accepted value at a path, and everything that isn't a frame.
 *
 * Use it before {@link decodeWith}: it searches the bytes in place, in a fraction of the time that `JSON.parse` takes
 * (with a function, in about the same time if frames are short), and accepts exactly the frames in which `JSON.parse`
 * would find such a value. Escapes and spaces, other objects with the same names, and the spelling of numbers (`1`,
 * `1.0`, `1e0`) make no difference. If a name occurs twice in an object, the last one counts. A frame that isn't JSON
 * may pass, so decode what passes. Binary frames don't pass.
 *
 * It's fastest directly after `tradeFeed$` or `tradeFeedEvents$`, where frames it refuses aren't even created.
 *
 * Completes and errors with the source. Also errors when the function throws. Memory: an index of the values.
 * ```ts
 * // source                  --{"to":"a"}--{"to":"b"}--opened--{"by":"a"}--|
 * // whereField('to', 'a')   --{"to":"a"}--------------opened--------------|
 * ```
 *
 * @param path - names of members: `'to'`, `'tx.to'`; `[]` means any element of a list: `'trades[].market'`, `'[].to'`.
 *   At most 100 steps
 * @param accepted - a text, number, boolean or `null`; or several; or a `Set`, which you may change at any time; or a
 *   function that gets the text of each value at the path, with numbers as the service wrote them; of a frame that isn't
 *   JSON it can get any text
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { from } from 'rxjs';
 * import { Frame, whereField } from 'rx-trade-feed';
 *
 * const frame = (text: string) =>
 *   new Frame('raw', Buffer.from(text), false, Date.now(), 1);
 * const wallets = new Set(['0xb2']);
 *
 * from([
 *   frame('{"from":"0xb2","to":"0xa1"}'),
 *   frame('{"from":"0xa1","to":"0xB2"}'),
 * ])
 *   .pipe(whereField('to', wallets, { ignoreCase: true }))
 *   .subscribe((each) => console.log(each.text())); // {"from":"0xa1","to":"0xB2"}
 * ```
 */
export const whereField = (
  path: string,
  accepted: AcceptedValues,
  options: WhereFieldOptions = {},
): (<E>(source: Observable<E>) => Observable<E>) => {
  checkRequired({ path, accepted }, { path: aPath, accepted: acceptable });
  const { ignoreCase = false } = validated(options, { ignoreCase: aBoolean });
  if (ignoreCase && aFunction.is(accepted)) throw invalidOption('ignoreCase', 'left out if `accepted` is a function');
  const [accepts, quick] = acceptance(accepted, ignoreCase);
  const hasField = fieldTest(stepsOf(path) as readonly string[], accepts, quick);
  const list = quick instanceof EndingsOfSet ? quick : undefined;
  return wherePayload((payload, isBinary, isUndisturbed) => {
    list?.moment(isUndisturbed);
    return !isBinary && hasField(payload);
  });
};

const aPath: Rule = {
  allowed:
    "names with dots between them, and [] for any element of a list, such as 'tx.to' or 'trades[].market'; at most 100 steps",
  is: (v) => isText(v) && (stepsOf(v)?.length ?? Infinity) <= 100,
};

const isValue = (v: unknown): v is FieldValue =>
  isText(v) || Number.isFinite(v) || typeof v === 'boolean' || v === null;
const isSet = (v: unknown): v is ReadonlySet<FieldValue> =>
  aFunction.is((v as Partial<ReadonlySet<FieldValue>> | null)?.has) && Symbol.iterator in (v as object);
const acceptable: Rule = {
  allowed: "a text, a number, true, false, null, a list of them that isn't empty, a Set of them, or a function",
  is: (v) =>
    isValue(v) ||
    aFunction.is(v) ||
    (Array.isArray(v) ? v.length > 0 && v.every(isValue) : isSet(v) && (tryCall(() => [...v].every(isValue)) ?? false)),
};

type Fold = (value: FieldValue) => FieldValue;

/** Returns what decides about a value, and what can refuse it faster before that. */
const acceptance = (accepted: AcceptedValues, ignoreCase: boolean): readonly [Accepts, QuickAccepts?] => {
  if (typeof accepted === 'function') return [(payload, ...place) => accepted(writtenAs(payload, ...place))];
  const fold: Fold = (value) => (ignoreCase && isText(value) ? value.toLowerCase() : value);
  const isIn =
    (has: (value: FieldValue) => boolean): Accepts =>
    (payload, from, to) =>
      has(fold(scalarOf(payload, from, to)));
  if (isSet(accepted))
    return [
      isIn(ignoreCase ? foldedSet(accepted, fold) : (value) => accepted.has(value)),
      new EndingsOfSet(accepted, fold),
    ];
  const values = new Set((isValue(accepted) ? [accepted] : accepted).map(fold));
  return [isIn((value) => values.has(value)), new Endings([...values].filter(isText))];
};

/**
 * Copies the texts of a set that may change. Looking in the copy is faster, because the set needs a string for each
 * value. But the copy is only current until user code runs again, and comparing it with the set costs time.
 */
class EndingsOfSet implements QuickAccepts {
  private readonly set: ReadonlySet<FieldValue>;
  private readonly isPlain: boolean;
  private readonly fold: Fold;
  private values: readonly FieldValue[] = [];
  private endings = new Endings([]);
  /** Whether the copy has the texts of the set; `undefined` until it's compared. */
  private isCurrent: boolean | undefined;
  /** How many values were checked since user code last ran, and since the last copy. */
  private count = 0;
  private countSinceCopy = Infinity;

  constructor(set: ReadonlySet<FieldValue>, fold: Fold) {
    this.set = set;
    this.fold = fold;
    // The methods of any other class are user code.
    this.isPlain = set.has === Set.prototype.has && set[Symbol.iterator] === Set.prototype[Symbol.iterator];
  }

  /** Call it before each payload. `isUndisturbed`: no user code has run since the last call. */
  moment(isUndisturbed: boolean): void {
    if (isUndisturbed) return;
    this.isCurrent = undefined;
    this.countSinceCopy += this.count;
    this.count = 0;
  }

  mayHave(payload: Uint8Array, from: number): boolean {
    if (!this.isPlain) return true;
    this.count += 1;
    // Comparing costs as much as looking up a sixteenth of the values.
    if (this.isCurrent === undefined && this.count * 16 >= this.set.size) this.isCurrent = this.update();
    return this.isCurrent !== true || this.endings.mayHave(payload, from);
  }

  private update(): boolean {
    let n = 0;
    let isSame = this.values.length === this.set.size;
    for (const value of this.set) if (this.values[n++] !== value) isSame = false;
    if (isSame) return true;
    // Copying costs about as much as checking that many values, and the set may change all the time.
    if (this.countSinceCopy < this.set.size) return false;
    this.countSinceCopy = 0;
    this.values = [...this.set];
    this.endings = new Endings(this.values.map(this.fold).filter(isText));
    return true;
  }
}

/** How long it may take to notice a text with capital letters that replaced another, in ms. */
const READ_EVERY_MS = 1_000;

const foldedSet = (set: ReadonlySet<FieldValue>, fold: Fold) => {
  const spellings = new Map<FieldValue, FieldValue[]>();
  let [size, readAt] = [-1, 0];
  return (value: FieldValue): boolean => {
    if (set.has(value)) return true;
    const now = performance.now();
    // Reading the whole set for each frame would be slow.
    if (set.size !== size || now - readAt >= READ_EVERY_MS) {
      spellings.clear();
      for (const each of set) spellings.set(fold(each), [...(spellings.get(fold(each)) ?? []), each]);
      [size, readAt] = [set.size, now];
    }
    return spellings.get(value)?.some((spelling) => set.has(spelling)) ?? false;
  };
};

/** Says whether to accept a {@link FieldValue}, whose JSON is in a payload from `from` to `to`. */
type Accepts = (payload: Uint8Array, from: number, to: number) => boolean;

/** Returns the steps of a path: names, and `[]` for each element of a list. `undefined` if it isn't a path. */
const stepsOf = (path: string): readonly string[] | undefined =>
  /^(?:[^.[\]]+|\[\])(?:\.[^.[\]]+|\[\])*$/.test(path)
    ? Array.from(path.matchAll(/[^.[\]]+|\[\]/g), ([step]) => step)
    : undefined;

const scalarOf = (payload: Uint8Array, from: number, to: number): FieldValue => {
  const first = payload[from];
  if (first === QUOTE) return stringOf(payload, from, to);
  if (first === 0x6e) return null;
  return first === 0x74 || (first !== 0x66 && Number(textOf(payload, from, to)));
};

/** Returns a {@link FieldValue} as the payload spells it; a string without quotes and escapes. */
const writtenAs = (payload: Uint8Array, from: number, to: number): string =>
  payload[from] === QUOTE ? stringOf(payload, from, to) : textOf(payload, from, to);

const stringOf = (payload: Uint8Array, from: number, to: number): string => {
  const text = textOf(payload, from + 1, to - 1);
  return text.includes('\\') ? (tryCall(() => JSON.parse(`"${text}"`) as string) ?? text) : text;
};

/** Rules out texts by their bytes, if they have no backslash. {@link Accepts} decides about the rest. */
interface QuickAccepts {
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
const fieldTest = (steps: readonly string[], accepts: Accepts, quick: QuickAccepts | undefined) => {
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
