import { Option } from 'commander';
import { usageError } from '../cli-error.js';

/** A type of option values. */
export interface ValueType {
  /** Converts the text of the value; returns `undefined` for a text that is not allowed. */
  readonly read: (text: string) => unknown;
  /** Completes the sentence "--option must be …". */
  readonly allowed: string;
}

/**
 * Creates an option with a value. An invalid value is an error that does not repeat the value, which may be a secret.
 *
 * @param flags - as in commander: `-n, --count <N>`
 */
export const valueOption = (flags: string, { read, allowed }: ValueType, help: string): Option => {
  const option = new Option(flags, help);
  return option.argParser((text) => {
    const value = read(text);
    if (value === undefined) throw usageError(`--${option.name()} must be ${allowed}.`);
    return value;
  });
};

/** Any text that is not empty. */
export const anyText: ValueType = { read: (text) => text || undefined, allowed: 'followed by a value' };

/** The address of the engine of a cluster. */
export const engineUrl: ValueType = {
  read: (text) => (/^(nats|tls|rediss?):\/\/./.test(text) && URL.canParse(text) ? text : undefined),
  allowed: 'an address such as nats://127.0.0.1:4222 or redis://127.0.0.1:6379',
};

/** The name of an account or of a replica. */
export const name: ValueType = {
  read: (text) => (/^[\w-]{1,80}$/.test(text) ? text : undefined),
  allowed: '1 to 80 letters, digits, - or _',
};

/** The address of a server of WebSockets. */
export const webSocketUrl: ValueType = {
  read: (text) => (URL.canParse(text) && /^wss?:$/.test(new URL(text).protocol) ? text : undefined),
  allowed: 'a ws: or wss: address, such as ws://127.0.0.1:8545',
};

/** One of the words. */
export const oneOf = (...words: readonly string[]): ValueType => ({
  read: (text) => words.find((word) => word === text),
  allowed: words.join(' or '),
});

/** A whole number within bounds. */
export const integer = (from: number, to = Number.MAX_SAFE_INTEGER): ValueType => ({
  read: (text) => (/^\d+$/.test(text) && Number(text) >= from && Number(text) <= to ? Number(text) : undefined),
  allowed: to === Number.MAX_SAFE_INTEGER ? `a whole number, ${from} or more` : `a whole number from ${from} to ${to}`,
});

const positiveUpTo = (text: string, most: number): number | undefined =>
  isDecimal(text) && Number(text) > 0 && Number(text) <= most ? Number(text) : undefined;

/** A number per second. */
export const perSecond: ValueType = {
  read: (text) => positiveUpTo(text, 100_000),
  allowed: 'a number above 0, up to 100000',
};

/** A factor of the recorded speed. */
export const speed: ValueType = {
  read: (text) => (text === 'max' ? Infinity : positiveUpTo(text, 1e6)),
  allowed: 'a number above 0, up to 1000000, or max',
};

const unitMs = new Map([
  ['', 1_000],
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** A time in seconds or with a unit, converted to ms. A timer accepts at most 2^31-1 ms. */
export const timeMs: ValueType = {
  read: (text) => {
    const amount = text.replace(/[a-z]*$/, '');
    const ms = Number(amount) * (unitMs.get(text.slice(amount.length)) ?? NaN);
    return isDecimal(amount) && ms <= 2 ** 31 - 1 ? ms : undefined;
  },
  allowed: 'a time of at most 24 days, such as 30, 1.5s, 10m or 2h',
};

/** The time between two requests, with a unit, converted to ms. */
export const periodMs: ValueType = {
  read: (text) => {
    const ms = timeMs.read(text);
    return isNumber(ms) && ms >= 100 ? ms : undefined;
  },
  allowed: 'a time from 100ms to 24 days',
};

const isNumber = (value: unknown): value is number => typeof value === 'number';

const unitBytes = new Map([
  ['', 1],
  ['k', 1e3],
  ['m', 1e6],
  ['g', 1e9],
  ['t', 1e12],
]);

/** A size with a decimal unit, converted to bytes. */
export const sizeBytes: ValueType = {
  read: (text) => {
    const [, amount = '', unit = ''] = /^([\d.]+)([kmgt]?)b?$/i.exec(text) ?? [];
    const bytes = Number(amount) * (unitBytes.get(unit.toLowerCase()) ?? NaN);
    return isDecimal(amount) && bytes >= 1 && bytes <= Number.MAX_SAFE_INTEGER ? Math.floor(bytes) : undefined;
  },
  allowed: 'a size such as 500kB, 100MB, 2GB or 1TB',
};

const isDecimal = (text: string): boolean => /^\d+(\.\d+)?$/.test(text);
