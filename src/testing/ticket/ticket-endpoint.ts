import type { Right } from 'fp-ts/lib/Either.js';
import type { Feed } from '../../protocol/feed.js';
import type { WireTicket } from '../../protocol/ticket-fields.js';
import { type Answer, jsonAnswer, refusalAnswer } from '../http/http-answer.js';
import { firstRefusal, type Refusal } from '../http/refusal.js';
import type { AccountRecord } from '../service/account.js';
import type { ServiceState } from '../service/service-state.js';
import { countInWindow } from './fixed-window.js';
import { readTicketBody } from './ticket-body.js';
import { type TicketFacts, ticketRules } from './ticket-rules.js';

/** The parts of a request that the endpoint reads. */
export interface TicketRequest {
  /** The `X-API-Key` header. The key is read only from there. */
  readonly apiKey: string | undefined;
  readonly body: Uint8Array;
}

/** Answers a ticket request (contract, section 4.1): a ticket, or the first refusal that applies. */
export const answerTicketRequest = (state: ServiceState, request: TicketRequest): Answer => {
  const facts = factsOf(state, request);
  const refusal = firstRefusal(ticketRules, facts);
  if (refusal !== undefined) return refuse(state, refusal, facts);
  // No rule applies, so the account is known and the body has a feed.
  const account = facts.account as AccountRecord;
  const feed = (facts.body as Right<Feed>).right;
  const ticket = issueTicket(state, account, feed);
  state.emit({ type: 'ticket-issued', account: account.id, feed, expiresAt: ticket.expires_at });
  return jsonAnswer(200, ticket);
};

interface Facts extends TicketFacts {
  readonly account: AccountRecord | undefined;
}

const factsOf = (state: ServiceState, { apiKey, body }: TicketRequest): Facts => {
  const { credentialsFail } = state;
  const account = credentialsFail || apiKey === undefined ? undefined : state.keys.get(apiKey);
  const isCounted = account !== undefined && account.active && account.entitled;
  return {
    credentialsFail,
    account,
    retryAfterSeconds: isCounted ? countRequest(state, account) : undefined,
    body: readTicketBody(body),
  };
};

const countRequest = (
  { settings: { limits, scheduler } }: ServiceState,
  account: AccountRecord,
): number | undefined => {
  const { window, retryAfterSeconds } = countInWindow(account.window, scheduler.now(), limits);
  account.window = window;
  return retryAfterSeconds;
};

const refuse = ({ settings, emit }: ServiceState, refusal: Refusal, { account, retryAfterSeconds }: Facts): Answer => {
  const { status, code, headers } = refusal;
  emit({ type: 'ticket-refused', status, code, account: account?.id, retryAfterSeconds });
  if (retryAfterSeconds === undefined) return refusalAnswer(refusal, settings.errorBody);
  const retryAfter = { 'Retry-After': String(retryAfterSeconds) };
  return refusalAnswer({ ...refusal, headers: { ...headers, ...retryAfter } }, settings.errorBody);
};

const issueTicket = ({ settings, tickets, wssUrl }: ServiceState, { id }: AccountRecord, feed: Feed): WireTicket => ({
  ticket: tickets.issue(id, feed),
  token_type: 'Bearer',
  // The clock of the `Date` header: a client subtracts one from the other.
  expires_at: new Date(Date.now() + settings.limits.ticketLifetimeMs).toISOString(),
  wss_url: wssUrl,
  feed,
  subprotocol: settings.subprotocols[feed],
});
