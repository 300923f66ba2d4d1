import { BadRequestException, ForbiddenException } from '@nestjs/common';
import { aFunction, checkRequired, oneOf, type Rule, validated } from '../protocol/rules.js';
import { type AllowedOrigins, checkCors, originsRule } from '../relay/cors.js';
import type { RelayTopic } from '../relay/index.js';
import { connectionBusy, originRefused } from '../relay/refusal-texts.js';
import { isPipelined, type SseRequest } from './sse-request.js';

/** The options of `TradeFeed.sse`. */
export interface SseOptions {
  /**
   * Which clients may read. `'guard'`: a guard of the route or of the application decides. `'everybody'`: each client that reaches the route
   * may read. There is no default. This option does not check whether there is a guard.
   */
  readonly authorize: 'guard' | 'everybody';
  /**
   * The id of the user that the guard accepted, for `relay.maxClientsPerUser` and `relay.disconnect(id)`.
   *
   * @defaultValue none: the limit does not count this stream
   */
  readonly user?: string | undefined;
  /**
   * An operator over the events of the feed, whose output this browser receives instead of every frame. It runs once for all browsers that
   * use the same function. Create it once, as a constant: each new function is a new topic.
   *
   * @defaultValue the complete feed
   */
  readonly select?: RelayTopic | undefined;
  /**
   * Other origins whose pages may read, such as `https://app.example.com`, or `'*'` for every page. Enable CORS in Nest for them too: Nest
   * sends the headers that allow a page to read the response.
   *
   * @defaultValue none: only the origin of the server
   */
  readonly allowOrigins?: AllowedOrigins | undefined;
}

/**
 * Validates the options, and returns a function that checks the request. The function throws the exception for 403 when the origin of the page
 * is not allowed, and for 400 when the response would have to wait for another one on the same connection.
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 */
export const requestCheck = (request: SseRequest, options: SseOptions): (() => void) => {
  checkRequired(Object(options) as object, { authorize: rules.authorize });
  const { allowOrigins = [] } = validated(options, rules);
  return () => {
    if (!checkCors(request, allowOrigins).isAllowed) throw new ForbiddenException(originRefused);
    // Otherwise one connection could use up `relay.maxClients`.
    if (isPipelined(request)) throw new BadRequestException(connectionBusy);
  };
};

const readers = oneOf('guard', 'everybody');

const rules: Readonly<Record<keyof SseOptions, Rule>> = {
  authorize: { ...readers, allowed: `${readers.allowed}: it decides who may read` },
  user: { allowed: 'a string that is not empty', isSecret: true, is: (v) => typeof v === 'string' && v !== '' },
  select: { allowed: 'an operator', is: aFunction.is },
  allowOrigins: originsRule,
};
