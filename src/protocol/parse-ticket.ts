import { Secret } from './secret.js';
import type { Ticket } from './ticket.js';
import { ticketFields, type WireTicket } from './ticket-fields.js';
import { tryCall } from './try-call.js';

/**
 * Parses the body of a ticket response as the codec `Ticket` does. Returns the ticket, or a description of the error.
 *
 * The errors of `JSON.parse` quote the body, which may contain a ticket. The description never quotes it.
 */
export const parseTicket = (body: string): Ticket | string => {
  const json = tryCall((): unknown => JSON.parse(body));
  if (json === undefined) return 'the body is not JSON';
  const wrong = wrongFields(json);
  if (wrong.length > 0) return `wrong or missing: ${wrong.join(', ')}`;
  const { ticket, token_type, expires_at, wss_url, feed, subprotocol } = json as WireTicket;
  return { ticket: new Secret(ticket), token_type, expires_at, wss_url, feed, subprotocol };
};

/** Returns the names of the invalid fields (`body` if the value is not an object), never their values. */
export const wrongFields = (json: unknown): readonly string[] => {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return ['body'];
  const fields = json as Readonly<Record<string, unknown>>;
  return Object.entries(ticketFields).flatMap(([name, isValid]) => (isValid(fields[name]) ? [] : [name]));
};
