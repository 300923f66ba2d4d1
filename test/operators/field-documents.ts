// Random JSON with hostile spacing, escapes, names and nesting, and whether whereField agrees with JSON.parse about it.
import { Subject } from 'rxjs';
import { type AcceptedValues, type FieldValue, Frame, whereField } from 'rx-trade-feed';

const paths = [
  ...['to', 'tx.to', 'to.to', 'trades[].market', '[].to', 'tags[]', '[]', 'to[].to', '[][].to', '[].to[]'],
  ...['é', '__proto__', 'to ', '"', '\\', '\u{1F600}.to', '\uFFFD', 'a-b_1'],
];
const names = 'to|tx|t|o|TO||to |é|"|\\|\uFFFD|__proto__|\u{1F600}|length|0'.split('|');
const values: readonly FieldValue[] = [
  ...['', 'a', 'b', ' a', 'to', '"to":"a"', 'a"b', 'a\\b', '0xAb', '0xab', 'aaaaaaaaaaaa', 'baaaaaaaaaaa', '/', '1'],
  ...['null', 'é', 'É', '\u212A', 'k', 'K', '\u0130', 'i\u0307', '\uD800', '\uFFFD', '\u{1F600}', 'éaaaaaaaa'],
  ...['ßaaaaaaaa', 1, 0, -0, -1, 0.5, 1e21, 5e-324, 12_345_678_901_234_567_890, true, false, null],
];
const stepsOf = (path: string) => path.match(/[^.[\]]+|\[\]/g) as readonly string[];

/** Returns the values that a document has at a path. */
const valuesAt = (document: unknown, [step, ...further]: readonly string[]): readonly unknown[] => {
  const isObject = typeof document === 'object' && document !== null;
  if (step === undefined) return isObject ? [] : [document];
  if (step === '[]') return Array.isArray(document) ? document.flatMap((each) => valuesAt(each, further)) : [];
  if (!isObject || Array.isArray(document) || !Object.hasOwn(document, step)) return [];
  return valuesAt((document as Record<string, unknown>)[step], further);
};

const upper = (value: FieldValue) => (typeof value === 'string' ? value.toUpperCase() : value);
const lower = (value: unknown) => (typeof value === 'string' ? value.toLowerCase() : value);
const same = (value: unknown) => value;

/** A generator of random documents. */
class Documents {
  #seed: number;
  /** What the documents should have more often. */
  likely: { readonly names: readonly string[]; readonly values: readonly FieldValue[] } = { names, values };

  constructor(seed: number) {
    this.#seed = seed;
  }

  random(): number {
    this.#seed = (this.#seed + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#seed ^ (this.#seed >>> 15), 1 | this.#seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  below = (count: number): number => Math.floor(this.random() * count);
  pick = <T>(list: readonly T[]): T => list[this.below(list.length)] as T;
  some = <T>(most: number, of: () => T): T[] => Array.from({ length: this.below(most + 1) }, of);
  isIn = (share: number): boolean => this.random() < share;
  space = (): string => (this.isIn(0.8) ? '' : this.pick([' ', '\n', '\t ', '\r\n', '   ']));
  around = (text: string): string => this.space() + text + this.space();

  text(value: string): string {
    const escaped = Array.from({ length: value.length }, (_, n) => {
      const plain = JSON.stringify(value.charAt(n)).slice(1, -1);
      const code = value.charCodeAt(n).toString(16).padStart(4, '0');
      return this.isIn(0.06)
        ? `\\u${this.isIn(0.5) ? code : code.toUpperCase()}`
        : plain === '/' && this.isIn(0.5)
          ? '\\/'
          : plain;
    });
    return `"${escaped.join('')}"`;
  }

  scalar = (): string => {
    const value = this.pick(this.isIn(0.5) ? this.likely.values : values);
    if (typeof value === 'string') return this.text(value);
    if (typeof value !== 'number') return String(value);
    const digits = Object.is(value, -0) ? '-0' : String(value);
    if (digits.includes('e')) return this.pick([digits, digits.toUpperCase()]);
    return digits + this.pick(['', '', digits.includes('.') ? '00' : '.0', 'e0', 'E+00', 'e-0']);
  };

  member = (value: () => string, name = this.pick(this.isIn(0.6) ? this.likely.names : names)): string =>
    `${this.around(this.text(name))}:${this.around(value())}`;

  value = (depth: number): string => {
    if (depth === 0 || this.isIn(0.5)) return this.scalar();
    const inner = () => this.value(depth - 1);
    return this.isIn(0.6)
      ? `{${this.some(4, () => this.member(inner)).join(',') || this.space()}}`
      : `[${this.some(4, () => this.around(inner())).join(',') || this.space()}]`;
  };

  /** Returns a document that mostly has values at a path. */
  along = ([step, ...further]: readonly string[]): string => {
    if (this.isIn(0.1)) return this.value(3);
    if (step === undefined) return this.scalar();
    const on = () => (step === '[]' ? this.around(this.along(further)) : this.member(() => this.along(further), step));
    const off = () => (step === '[]' ? this.around(this.value(1)) : this.member(() => this.value(2)));
    const parts = [...this.some(2, off), ...this.some(1, on), on(), ...this.some(2, off), ...this.some(1, on)];
    return step === '[]' ? `[${parts.join(',')}]` : `{${parts.join(',')}}`;
  };

  /** Changes the bytes: adds invalid UTF-8, puts a character of JSON in a wrong place, or cuts off the end. */
  damaged(bytes: Buffer): Buffer {
    const copy = Buffer.from(bytes);
    const at = this.below(copy.length);
    const kind = this.below(3);
    if (kind === 0) return copy.subarray(0, at);
    if (kind === 1 && (copy[at] ?? 0) >= 0x61) copy[at] = 0x80 + this.below(0x80);
    else copy[at] = this.pick([...Buffer.from('"\\{}[],: 0e-ntf'), 0, 0x0a]);
    return copy;
  }
}

/** One use of the operator: what it accepts, and whether it emits a frame. */
const filterOf = (path: string, accepted: AcceptedValues, ignoreCase: boolean, thrown: unknown[]) => {
  const source = new Subject<Frame<Uint8Array>>();
  let emitted = 0;
  source.pipe(whereField(path, accepted, { ignoreCase })).subscribe({
    next: () => (emitted += 1),
    error: (error: unknown) => thrown.push(error),
  });
  return (frame: Frame<Uint8Array>): boolean => {
    const before = emitted;
    source.next(frame);
    return emitted > before;
  };
};

/** What a comparison found. */
export interface Comparison {
  documents: number;
  /** How many were valid JSON, and how many of these had an accepted value. */
  valid: number;
  matching: number;
  /** How many had their end cut off. */
  cuts: number;
  readonly differences: string[];
}

/** Compares the operator with `JSON.parse` on random documents. */
export const compareWithParse = (count: number, seed: number): Comparison => {
  const random = new Documents(seed);
  const result: Comparison = { documents: 0, valid: 0, matching: 0, cuts: 0, differences: [] };
  const thrown: unknown[] = [];
  let seen: unknown[] = [];
  const filters = paths.flatMap((path) =>
    [false, true].flatMap((ignoreCase) => {
      const list = [random.pick(values), random.pick(values), random.pick(values)];
      const set = new Set<FieldValue>(list);
      const folded = ignoreCase ? lower : same;
      const filter = (accepted: FieldValue | FieldValue[] | Set<FieldValue>, some: () => Iterable<unknown>) => ({
        ...{ path, list, set, ignoreCase, passes: filterOf(path, accepted, ignoreCase, thrown) },
        wants: (each: unknown) => new Set(Array.from(some(), folded)).has(folded(each)),
      });
      return [filter(list[0]!, () => [list[0]]), filter(list, () => list), filter(set, () => set)];
    }),
  );
  const readers = new Map(
    paths.map((path) => [path, filterOf(path, (text) => seen.push(text) === 0, false, thrown)] as const),
  );

  const check = (bytes: Uint8Array, { path, set, passes, wants }: (typeof filters)[number]): void => {
    // The bytes around the payload would match, but must not be read.
    const before = '{"to":"a","tags":["a"],"to":';
    const behind = Buffer.concat([Buffer.from(before), bytes, Buffer.from('"a"}],"to":"a"}')]);
    const inside = behind.subarray(before.length, before.length + bytes.length);
    const frame = new Frame<Uint8Array>('raw', random.isIn(0.3) ? new Uint8Array(bytes) : inside, false, 0, 1);
    const emitted = passes(frame);
    seen = [];
    readers.get(path)!(frame);
    const difference = (what: string) =>
      result.differences.push(`${what}, seed ${seed}, ${path}, ${JSON.stringify([...set])}: ${frame.text()}`);
    if (thrown.length > 0) difference(`${thrown.splice(0).map(String).join()} was thrown`);
    let document: unknown;
    try {
      document = JSON.parse(frame.text());
    } catch {
      return;
    }
    result.valid += 1;
    const found = valuesAt(document, stepsOf(path));
    const isWanted = found.some(wants);
    result.matching += Number(isWanted);
    if (emitted !== isWanted) difference(emitted ? 'passed' : 'was dropped');
    const isRead = (value: unknown, n: number) =>
      value === (typeof found[n] === 'string' ? found[n] : undefined) || Object.is(JSON.parse(String(value)), found[n]);
    if (seen.length !== found.length || !seen.every(isRead)) difference(`read as ${JSON.stringify(seen)}`);
  };

  for (; result.documents < count && result.differences.length < 10; result.documents += 1) {
    const filter = random.pick(filters);
    const { path, list, set, ignoreCase } = filter;
    const steps = stepsOf(path);
    random.likely = { names: steps.filter((step) => step !== '[]'), values: [...list, ...list.map(upper)] };
    if (random.likely.names.length === 0) random.likely = { ...random.likely, names };
    // The set changes while frames arrive. With `ignoreCase` it only grows, because replaced texts are noticed later.
    if (!ignoreCase && random.isIn(0.02)) set.delete(random.pick([...set]) ?? '');
    if (set.size < (ignoreCase ? 6 : 3) && random.isIn(0.1)) set.add(random.pick(values));
    const bytes = Buffer.from(random.around(random.isIn(0.85) ? random.along(steps) : random.value(4)));
    check(random.isIn(0.15) ? random.damaged(bytes) : bytes, filter);
    if (!random.isIn(0.02)) continue;
    result.cuts += bytes.length;
    for (let end = 0; end < bytes.length; end += 1) check(bytes.subarray(0, end), filter);
  }
  return result;
};
