import { ForbiddenException } from '@nestjs/common';
import { aFunction, checkGiven, oneOf, type Rule, validated } from '../protocol/rules.js';
import { corsOf, type Origins, originsRule } from '../relay/cors.js';
import type { RelayTopic } from '../relay/index.js';
import type { SseRequest } from './sse-request.js';

/** Whom `TradeFeed.sse` serves. */
export interface SseOptions {
  /**
   * Who decides whether this request may read: `'guard'`, a guard of the route or of the application, or nobody, so that it is
   * `'everybody'` who can reach the route. There is no default. It opens the door; it does not look whether there is a guard.
   */
  readonly authorize: 'guard' | 'everybody';
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
  readonly allowOrigins?: Origins | undefined;
}

/**
 * Gives a function that throws what Nest answers with 403 when the request is of a page of an origin that is not allowed.
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 */
export const admission = (request: SseRequest, options: SseOptions): (() => void) => {
  checkGiven(Object(options) as object, { authorize: rules.authorize });
  const { allowOrigins = [] } = validated(options, rules);
  return () => {
    if (!corsOf(request, allowOrigins).isAllowed)
      throw new ForbiddenException('This feed does not serve pages of that origin: `sse()` was not told to allow it.');
  };
};

const whoDecides = oneOf('guard', 'everybody');

const rules: Readonly<Record<keyof SseOptions, Rule>> = {
  authorize: { ...whoDecides, allowed: `who decides who may read: ${whoDecides.allowed}` },
  select: { allowed: 'an operator', is: aFunction.is },
  allowOrigins: originsRule,
};
