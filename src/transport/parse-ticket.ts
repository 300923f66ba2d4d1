import { ticketFields, type WireTicket } from '../protocol/contract.js';
import { excessOf, redactor, Secret } from '../protocol/secret.js';
import type { Ticket } from '../protocol/ticket.js';
import { tryCall } from '../protocol/type-guards.js';

/** Parses like the codec `Ticket`. If that fails, says why without quoting the body, which `JSON.parse` would do. */
export const parseTicket = (body: string): Ticket | string => {
  // A parser may ignore a byte order mark (RFC 8259, 8.1); that of JavaScript refuses it.
  const json = tryCall((): unknown => JSON.parse(body.replace(/^\uFEFF/, '')));
  if (json === undefined) return "the body isn't JSON";
  const wrong = wrongFields(json);
  if (wrong.length > 0) {
    const described = wrong.map((name) => (name === 'ticket' ? name + excessOf((json as WireTicket).ticket) : name));
    return `wrong or missing: ${described.join(', ')}`;
  }
  const { ticket, token_type, expires_at, wss_url, feed, subprotocol } = json as WireTicket;
  return { ticket: new Secret(ticket), token_type, expires_at, wss_url, feed, subprotocol };
};

/** Returns the names of the invalid fields (`body` if the value is not an object), never their values. */
export const wrongFields = (json: unknown): readonly string[] => {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return ['body'];
  const fields = json as Readonly<Record<string, unknown>>;
  return Object.entries(ticketFields).flatMap(([name, isValid]) => (isValid(fields[name]) ? [] : [name]));
};

export const redactorOf = ({ ticket, redact = redactor(ticket) }: Ticket): ((text: string) => string) => redact;
