import type { IncomingMessage, ServerResponse } from 'node:http';
import { unescape } from 'node:querystring';
import type { ServiceState } from '../service/service-state.js';
import { isDeclaredJson } from '../ticket/ticket-body.js';
import { answerTicketRequest } from '../ticket/ticket-endpoint.js';

import { type Answer, refusalAnswer, sendAnswer } from './http-answer.js';
import type { HttpHandlers } from './http-server.js';
import { firstRefusal, type Refusal } from './refusal.js';
import { readBody } from './request-body.js';
import { pathOf, requestTooLarge, routeRules, shuttingDown, ticketPath, upgradeRequired } from './route-rules.js';

/** Creates the handler of plain HTTP requests: it answers ticket requests and refuses all others. */
export const createRequestHandler = (state: ServiceState): HttpHandlers['onRequest'] => {
  const { settings, emit } = state;
  const refuse = (response: ServerResponse, refusal: Refusal): void =>
    sendAnswer(response, refusalAnswer(refusal, settings.errorBody));

  const answerOf = async (request: IncomingMessage): Promise<Answer | undefined> => {
    const body = await readBody(request, settings.limits.requestBytes);
    if (body === 'aborted') return undefined;
    if (body === 'too-large') return refusalAnswer(requestTooLarge, settings.errorBody);
    // Checked after reading the body, because a shutdown may have begun in the meantime.
    if (state.isShuttingDown) return refusalAnswer(shuttingDown, settings.errorBody);
    // Node joins the values of a header that is sent twice, so the type is never an array. The joined value is not a valid key.
    const apiKey = request.headers['x-api-key'] as string | undefined;
    if (body.byteLength > 0 && !isDeclaredJson(request.headers['content-type'])) {
      emit({ type: 'violation', rule: 'content-type' });
    }
    return answerTicketRequest(state, { apiKey, body });
  };

  const answerTicket = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const answer = await answerOf(request);
    if (answer) sendAnswer(response, answer);
  };

  return (request, response) => {
    const path = pathOf(request.url);
    if (hasCredential(state, request.url)) emit({ type: 'violation', rule: 'credential-in-url' });
    const refusal = firstRefusal(routeRules, { path, method: request.method });
    if (refusal) emit({ type: 'violation', rule: refusal.status === 404 ? 'unknown-path' : 'wrong-method' });
    if (refusal) refuse(response, refusal);
    else if (path === ticketPath) void answerTicket(request, response);
    else refuse(response, upgradeRequired);
  };
};

/** Returns whether a request target contains an API key or a ticket of this service (contract, sections 4.1 and 4.2). */
export const hasCredential = ({ keys, tickets }: ServiceState, target: string): boolean =>
  target.split(/[/?&=;]/).some((piece) => {
    const text = unescape(piece);
    return keys.has(text) || tickets.has(text);
  });
