/**
 * Wraps an API key or a ticket so that it cannot be printed by accident.
 *
 * String conversion, `JSON.stringify` and `util.inspect` show `[secret]`; there are no properties to list. Only {@link Secret.reveal}
 * returns the value. The library sends an API key only in the `X-API-Key` header of the ticket request, and a ticket only in the
 * `Authorization` header of the handshake (contract, section 5).
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

  /** @throws TypeError if the value cannot be sent as a credential: not a string, empty, or not visible ASCII */
  constructor(value: string) {
    if (!isCredential(value)) throw new TypeError('A secret must be one or more visible ASCII characters.');
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
  const values = secrets.filter((secret) => secret instanceof Secret).map((secret) => secret.reveal());
  if (values.length === 0) return (text) => text;
  // The longest first: if a ticket begins with the key, the complete ticket must be hidden.
  const patterns = values.sort((a, b) => b.length - a.length).map(escapePattern);
  // Case is ignored, because errors report host names in lower case.
  const anySecret = new RegExp(patterns.join('|'), 'gi');
  return (text) => text.replace(anySecret, '[secret]');
};

const escapePattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Returns whether a value can be sent as a credential in an HTTP header: one or more visible ASCII characters (RFC 9110, 5.5). */
export const isCredential = (text: unknown): text is string => typeof text === 'string' && /^[\x21-\x7e]+$/.test(text);
