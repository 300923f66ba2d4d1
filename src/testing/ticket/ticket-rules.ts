import type { Either } from 'fp-ts/lib/Either.js';
import { isRight } from '../../protocol/either.js';
import type { Feed } from '../../protocol/feed.js';
import type { RefusalRule } from '../http/refusal.js';
import type { BodyFault } from './ticket-body.js';

/** The facts that the ticket rules check. */
export interface TicketFacts {
  readonly credentialsFail: boolean;
  /** The account of the key in `X-API-Key`; `undefined` if the key is missing or unknown. */
  readonly account: { readonly active: boolean; readonly entitled: boolean } | undefined;
  /** Set if the account's window is full. */
  readonly retryAfterSeconds: number | undefined;
  readonly body: Either<BodyFault, Feed>;
}

const isFault = ({ body }: TicketFacts, fault: BodyFault): boolean => !isRight(body) && body.left === fault;

/**
 * The refusals of the ticket endpoint (contract, section 7.1), in the order of the checks.
 *
 * The contract defines no order. Without the credential service no key can be checked, so its 503 is first. The window belongs to an account, so 429
 * follows 401 and 403. The window limits requests, not tickets, so a request that gets 422 counts, and 422 is last.
 */
export const ticketRules: readonly RefusalRule<TicketFacts>[] = [
  {
    status: 503,
    code: 'credential-service-unavailable',
    message: 'The credential service is not available.',
    when: ({ credentialsFail }) => credentialsFail,
  },
  {
    status: 401,
    code: 'invalid-api-key',
    message: 'The X-API-Key header is missing or is not a valid key.',
    headers: { 'WWW-Authenticate': 'ApiKey' },
    when: ({ account }) => account === undefined,
  },
  {
    status: 403,
    code: 'account-inactive',
    message: 'The account is not active.',
    when: ({ account }) => account?.active === false,
  },
  {
    status: 403,
    code: 'not-entitled',
    message: 'The account is not entitled to the stream.',
    when: ({ account }) => account?.entitled === false,
  },
  {
    status: 429,
    code: 'rate-limited',
    message: 'Too many ticket requests in this window.',
    when: ({ retryAfterSeconds }) => retryAfterSeconds !== undefined,
  },
  {
    status: 422,
    code: 'invalid-body',
    message: 'The body must be a JSON object, sent as application/json.',
    when: (facts) => isFault(facts, 'invalid-body'),
  },
  {
    status: 422,
    code: 'unknown-feed',
    message: 'The feed must be "market" or "raw".',
    when: (facts) => isFault(facts, 'unknown-feed'),
  },
];
