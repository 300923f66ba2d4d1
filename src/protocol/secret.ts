import { tryCall } from './type-guards.js';

/**
 * Wraps an API key or a ticket so that you can't print it by accident.
 *
 * String conversion, `JSON.stringify` and `util.inspect` show `[secret]`, and it has no properties to list. Only {@link
 * Secret.reveal} returns the value. The library sends an API key only in the `X-API-Key` header of the ticket request,
 * and a ticket only in the `Authorization` header of the handshake (contract, section 5).
 *
 * @example
 * ```ts
 * import { Secret } from 'rx-trade-feed';
 *
 * String(new Secret('abc')); // '[secret]'
 * ```
 */
export class Secret {
  readonly #value: string;

  /**
   * @throws TypeError if the value cannot be sent as a credential: not a string, empty, longer than 16 384 characters,
   * or not visible ASCII
   */
  constructor(value: string) {
    if (!isCredential(value))
      throw new TypeError(
        `A secret ${credentialEdge(value) ?? `must be one or more visible ASCII characters${excessOf(value)}`}.`,
      );
    this.#value = value;
  }

  /** Returns the wrapped value. */
  reveal(): string {
    return this.#value;
  }

  /** Returns `[secret]`. */
  toString(): string {
    return '[secret]';
  }

  /** Returns `[secret]`. */
  toJSON(): string {
    return '[secret]';
  }

  /** Returns `[secret]`, for `util.inspect`. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

/** Creates a function that hides secrets in text from outside: a close reason, the message of a network error. */
export const redactor = (...secrets: readonly unknown[]): ((text: string) => string) => {
  // Ignores case, because errors report host names in lower case. Longest first: if a ticket begins with the key, the
  // whole ticket must be hidden.
  const values = secrets
    .filter((secret) => secret instanceof Secret)
    .map((secret) => inLowerCase(secret.reveal()))
    .sort((a, b) => b.length - a.length);
  return values.length === 0 ? (text) => text : (text) => hideAll(values, text);
};

// Not a RegExp: if it's too long, V8 quotes it in a `SyntaxError`, and with it the secret.
const hideAll = (values: readonly string[], text: string): string => {
  const lower = inLowerCase(text);
  let hidden = '';
  let from = 0;
  for (;;) {
    const found = values.map((value) => ({ at: lower.indexOf(value, from), value })).filter(({ at }) => at >= 0);
    if (found.length === 0) return hidden + text.slice(from);
    const { at, value } = found.reduce((first, other) => (other.at < first.at ? other : first));
    hidden += `${text.slice(from, at)}[secret]`;
    from = at + value.length;
  }
};

// `toLowerCase` can change the length of text outside ASCII, which would shift the positions.
const inLowerCase = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** The longest credential, in characters. Node, for one, refuses requests with more than 16 KiB of headers. */
const maxCredentialLength = 16_384;

/** Returns whether a value fits into an HTTP header (RFC 9110, 5.5): visible ASCII, and not too much of it. */
export const isCredential = (text: unknown): text is string =>
  typeof text === 'string' && text.length <= maxCredentialLength && /^[\x21-\x7e]+$/.test(text);

/** Says what to remove from a value that would be a credential without it, and never shows the value. */
export const credentialEdge = (value: unknown): string | undefined => {
  if (typeof value !== 'string' || value === value.trim() || !isCredential(value.trim())) return undefined;
  const isStart = value !== value.trimStart();
  const edge = isStart ? value[0] : value.at(-1);
  const name = /[\r\n]/.test(edge as string) ? 'a line break' : edge === ' ' ? 'a space' : 'white space';
  return `${isStart ? 'begins' : 'ends'} with ${name}. Remove it`;
};

/** Describes a credential that's too long, without showing it; `''` for any other value. */
export const excessOf = (value: unknown): string =>
  typeof value === 'string' && value.length > maxCredentialLength
    ? `, got ${value.length} characters (at most ${maxCredentialLength})`
    : '';

/** Returns the user and the password of an address. A `%` that doesn't begin an escape is kept. */
export const credentialsOf = ({ username, password }: URL): { readonly user: string; readonly password: string } => ({
  user: decoded(username),
  password: decoded(password),
});

const decoded = (text: string): string =>
  text.replaceAll(/(?:%[\da-f]{2})+/gi, (escapes) => tryCall(() => decodeURIComponent(escapes)) ?? escapes);
