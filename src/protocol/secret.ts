import { tryCall } from './type-guards.js';

/**
 * Wraps an API key or a ticket so that it cannot be printed by accident.
 *
 * String conversion, `JSON.stringify` and `util.inspect` show `[secret]`; there are no properties to list. Only {@link
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
      throw new TypeError(`A secret must be one or more visible ASCII characters${excessOf(value)}.`);
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
  // Case is ignored, because errors report host names in lower case. The longest first: if a ticket begins with the
  // key, the complete ticket must be hidden.
  const values = secrets
    .filter((secret) => secret instanceof Secret)
    .map((secret) => inLowerCase(secret.reveal()))
    .sort((a, b) => b.length - a.length);
  return values.length === 0 ? (text) => text : (text) => hideAll(values, text);
};

// A RegExp of a secret would put it into the `SyntaxError` of V8 when it is too long.
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

// `toLowerCase` alone can change the length of a text that is not ASCII, and with it the positions.
const inLowerCase = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** The longest credential, in characters. Node, for example, refuses a request whose headers have more than 16 KiB. */
const maxCredentialLength = 16_384;

/** Returns whether a value can be sent in an HTTP header (RFC 9110, 5.5): visible ASCII, and not too much. */
export const isCredential = (text: unknown): text is string =>
  typeof text === 'string' && text.length <= maxCredentialLength && /^[\x21-\x7e]+$/.test(text);

/** Returns the words for an error about a credential that is too long, which must not show it; otherwise `''`. */
export const excessOf = (value: unknown): string =>
  typeof value === 'string' && value.length > maxCredentialLength
    ? `, got ${value.length} characters (at most ${maxCredentialLength})`
    : '';

/** Returns the user and the password of an address. A `%` that begins no escape stands for itself. */
export const credentialsOf = ({ username, password }: URL): { readonly user: string; readonly password: string } => ({
  user: decoded(username),
  password: decoded(password),
});

const decoded = (text: string): string =>
  text.replaceAll(/(?:%[\da-f]{2})+/gi, (escapes) => tryCall(() => decodeURIComponent(escapes)) ?? escapes);
