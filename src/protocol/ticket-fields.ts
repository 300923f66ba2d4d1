import type { Feed } from './feed.js';
import { isFeed } from './feed-names.js';
import { isLoopback } from './loopback.js';
import { isCredential } from './secret.js';
import { parseTimestamp } from './timestamp.js';
import { tryCall } from './try-call.js';
import { isText } from './type-guards.js';

/** The JSON object of the ticket response (contract, section 2.1). */
export interface WireTicket {
  readonly ticket: string;
  readonly token_type: 'Bearer';
  readonly expires_at: string;
  readonly wss_url: string;
  readonly feed: Feed;
  readonly subprotocol: string;
}

// RFC 9110, 5.6.2: a subprotocol is a token.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const isSocketUrl = (text: string): boolean => {
  const url = /\s/.test(text) ? undefined : tryCall(() => new URL(text));
  return (
    url !== undefined &&
    (url.protocol === 'wss:' || (url.protocol === 'ws:' && isLoopback(url))) &&
    url.hash === '' &&
    url.username === '' &&
    url.password === ''
  );
};

/**
 * The checks of the fields of a ticket response, in the order of the contract. The codec and the parser share them: the parser works without
 * io-ts, which takes longer to load than the rest of this package.
 */
export const ticketFields = {
  ticket: isCredential,
  token_type: (value: unknown) => value === 'Bearer',
  expires_at: (value: unknown) => isText(value) && !Number.isNaN(parseTimestamp(value)),
  wss_url: (value: unknown) => isText(value) && isSocketUrl(value),
  feed: isFeed,
  subprotocol: (value: unknown) => isText(value) && token.test(value),
} satisfies { readonly [Field in keyof WireTicket]: (value: unknown) => boolean };
