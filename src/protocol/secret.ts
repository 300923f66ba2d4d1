/**
 * Wraps an API key or a ticket so that it cannot be printed by accident.
 *
 * String conversion, `JSON.stringify`, `util.inspect` and every property listing show `[secret]`; only {@link Secret.reveal}
 * gives the value. The library sends it in two places: the `X-API-Key` header of the ticket request and the `Authorization`
 * header of the handshake (contract, section 5).
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

  /** @throws TypeError when the value could not be sent as a credential: no text, empty, or not visible ASCII */
  constructor(value: string) {
    if (!isCredential(value)) throw new TypeError('A secret must be one or more visible ASCII characters.');
    this.#value = value;
  }

  /** Gives the wrapped value. */
  reveal(): string {
    return this.#value;
  }

  /** Gives `[secret]`. */
  toString(): string {
    return '[secret]';
  }

  /** Gives `[secret]`. */
  toJSON(): string {
    return '[secret]';
  }

  /** Gives `[secret]`, for `util.inspect`. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

/** Hides secrets in a text that somebody else wrote: a close reason, the message of a network error. */
export const redactor = (...secrets: readonly unknown[]): ((text: string) => string) => {
  const known = secrets.filter((secret) => secret instanceof Secret).map((secret) => secret.reveal());
  if (known.length === 0) return (text) => text;
  // The longest first: of a ticket that begins with the key no part shall be left.
  const either = known.sort((a, b) => b.length - a.length).map(byTheLetter);
  // Without regard to case: a host name is told in lower case.
  const everywhere = new RegExp(either.join('|'), 'gi');
  return (text) => text.replace(everywhere, '[secret]');
};

const byTheLetter = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Tells whether a text can be sent as a credential in an HTTP header: one or more visible ASCII characters (RFC 9110, 5.5). */
export const isCredential = (text: unknown): text is string => typeof text === 'string' && /^[\x21-\x7e]+$/.test(text);
