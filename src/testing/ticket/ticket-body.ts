import type { Either } from 'fp-ts/lib/Either.js';
import { left, right } from '../../protocol/either.js';
import type { Feed } from '../../protocol/feed.js';
import { isFeed } from '../../protocol/feed-names.js';

/** Why a body is refused with 422. */
export type BodyFault = 'invalid-body' | 'unknown-feed';

/**
 * Reads the optional body of a ticket request (contract, section 2.2): no body, or no `feed`, selects `market`.
 *
 * A body must be a JSON object in UTF-8; fields other than `feed` are ignored. Section 7.1 refuses invalid content, not a wrong `Content-Type`:
 * {@link isDeclaredJson} only reports a violation.
 */
export const readTicketBody = (body: Uint8Array): Either<BodyFault, Feed> => {
  if (body.byteLength === 0) return right('market');
  const json = parseJson(body);
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return left('invalid-body');
  const feed = 'feed' in json ? json.feed : 'market';
  return isFeed(feed) ? right(feed) : left('unknown-feed');
};

/** Returns whether a body is sent as `application/json`, as section 4.1 requires. */
export const isDeclaredJson = (contentType: string | undefined): boolean =>
  /^application\/json *(;|$)/i.test(contentType ?? '');

const parseJson = (body: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
};
