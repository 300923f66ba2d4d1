import { inspect } from 'node:util';
import { issued, entriesOf } from './entries-of.js';
import type { Issued, Request, Seen, Subscribed } from './seen.js';

export const requestSecrets = (log: readonly Seen[], { apiKey }: Subscribed): readonly string[] => {
  const tickets = issued(log).map(({ ticket }) => ticket);
  const without = ({ url, headers, body }: Request, ...except: readonly string[]) =>
    inspect({ url, body, ...Object.fromEntries(Object.entries(headers).filter(([name]) => !except.includes(name))) });
  return entriesOf(log, 'ticket-request', 'handshake').flatMap(({ what, request }) => {
    const [where, secret] = what === 'handshake' ? ['authorization', 'ticket'] : ['x-api-key', apiKey];
    const rest = without(request, where);
    return [
      ...(what === 'ticket-request' && request.headers['x-api-key'] !== secret
        ? ['a ticket request without the key']
        : []),
      ...(rest.includes(apiKey) ? [`the key is elsewhere in a ${what}`] : []),
      ...(tickets.some((ticket) => rest.includes(ticket)) ? [`a ticket is elsewhere in a ${what}`] : []),
    ];
  });
};

export const emittedSecrets = (log: readonly Seen[], { apiKey }: Subscribed): readonly string[] => {
  const secrets = [apiKey, ...issued(log).map(({ ticket }) => ticket)];
  return entriesOf(log, 'event', 'errored').flatMap((seen) => {
    const emitted = seen.what === 'event' ? seen.event : seen.error;
    const text = `${inspect(emitted, { depth: null, showHidden: true })}${JSON.stringify(emitted)}`;
    return secrets.some((secret) => text.includes(secret)) ? [`a secret is in ${seen.what}`] : [];
  });
};

/** Checks that each ticket is used once, with the returned address and subprotocol. */
export const ticketUse = (log: readonly Seen[]): readonly string[] => {
  const fresh = new Map<string, Issued>();
  return log.flatMap((seen) => {
    if (seen.what === 'ticket-answered' && seen.ticket) fresh.set(`Bearer ${seen.ticket.ticket}`, seen.ticket);
    if (seen.what !== 'handshake') return [];
    const { url, headers } = seen.request;
    const authorization = String(headers['authorization']);
    const ticket = fresh.get(authorization);
    fresh.delete(authorization);
    if (ticket === undefined) return ['a handshake without a fresh ticket'];
    if (url !== ticket.path) return [`a handshake at ${url} instead of ${ticket.path}`];
    return headers['sec-websocket-protocol'] === ticket.subprotocol ? [] : ['a handshake with another subprotocol'];
  });
};
