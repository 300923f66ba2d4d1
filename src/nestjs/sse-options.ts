import { BadRequestException, ForbiddenException } from '@nestjs/common';
import { aFunction, checkRequired, oneOf, type Rule, validated } from '../protocol/rules.js';
import { type AllowedOrigins, checkCors, originsRule } from '../relay/cors.js';
import type { RelayTopic } from '../relay/index.js';
import { isPipelined, type SseRequest } from './sse-request.js';

/** Whom `TradeFeed.sse` serves. */
export interface SseOptions {
  /**
   * Who decides whether this request may read: `'guard'`, a guard of the route or of the application, or nobody, so that it is
   * `'everybody'` who can reach the route. There is no default. It opens the door; it does not look whether there is a guard.
   */
  readonly authorize: 'guard' | 'everybody';
  /**
   * The id of the user whom the guard let in, for `relay.maxClientsPerUser` and `relay.disconnect(id)`.
   *
   * @defaultValue none: the limit does not count this stream
   */
  readonly user?: string | undefined;
  /**
   * What this browser gets instead of every frame: an operator over the events of the feed, which runs once for all that get the same
   * function. Create it once, as a constant: one that is created for each request is a topic for each.
   *
   * @defaultValue the whole feed
   */
  readonly select?: RelayTopic | undefined;
  /**
   * The other origins whose pages may receive, such as `https://app.example.com`; `'*'`: every page. Turn CORS on in Nest for them, too: the
   * headers that let a page read the answer are Nest's.
   *
   * @defaultValue none: the origin of the server alone
   */
  readonly allowOrigins?: AllowedOrigins | undefined;
}

/**
 * Gives a function that throws what Nest answers with 403 when the request is of a page of an origin that is not allowed, and with 400 when
 * its answer would have to wait for another one on the same connection.
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 */
export const admission = (request: SseRequest, options: SseOptions): (() => void) => {
  checkRequired(Object(options) as object, { authorize: rules.authorize });
  const { allowOrigins = [] } = validated(options, rules);
  return () => {
    if (!checkCors(request, allowOrigins).isAllowed)
      throw new ForbiddenException('This feed does not serve pages of that origin: `sse()` was not told to allow it.');
    // One connection could take every place.
    if (isPipelined(request)) throw new BadRequestException('This connection is busy with another answer.');
  };
};

const whoDecides = oneOf('guard', 'everybody');

const rules: Readonly<Record<keyof SseOptions, Rule>> = {
  authorize: { ...whoDecides, allowed: `who decides who may read: ${whoDecides.allowed}` },
  user: { allowed: 'a text that is not empty', isSecret: true, is: (v) => typeof v === 'string' && v !== '' },
  select: { allowed: 'an operator', is: aFunction.is },
  allowOrigins: originsRule,
};
