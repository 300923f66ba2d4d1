import { inspect } from 'node:util';
import { TradeFeedError } from 'rx-trade-feed';
import { expectedFailure, stoppingCodes } from '../failure-table.js';
import type { Failed, Issued, Lifecycle, Request, Seen, Subscribed } from './seen.js';

type Of<What extends Seen['what']> = Extract<Seen, { readonly what: What }>;

const entriesOf = <What extends Seen['what']>(log: readonly Seen[], ...what: readonly What[]): readonly Of<What>[] =>
  log.filter((seen): seen is Of<What> => (what as readonly string[]).includes(seen.what));

const eventsOf = (log: readonly Seen[]): readonly Lifecycle[] => entriesOf(log, 'event').map(({ event }) => event);

const failuresOf = (log: readonly Seen[]): readonly Failed[] =>
  eventsOf(log).filter((event): event is Failed => event.type === 'disconnected' || event.type === 'gap');

const issued = (log: readonly Seen[]): readonly Issued[] =>
  entriesOf(log, 'ticket-answered').flatMap(({ ticket }) => (ticket ? [ticket] : []));

// One letter for each event: t(icket requested), i(ssued), o(pened), then O(pened again) with its g(ap), f(rames), d(isconnected), r(econnecting), and
// s(topped) at the end. Watermarks may occur anywhere, and the log may end anywhere.
const attempts = /^(t(i((o|Og)f*)?)?dr)*(t(i((o|Og)f*)?)?d?s?|tiO)?$/;
const letters: Readonly<Record<Lifecycle['type'], string>> = {
  ...{ 'ticket-requested': 't', 'ticket-issued': 'i', opened: 'O', gap: 'g' },
  ...{ disconnected: 'd', reconnecting: 'r', stopped: 's', watermark: '' },
};

const grammar: (log: readonly Seen[]) => readonly string[] = (log) => {
  const emitted = entriesOf(log, 'event', 'frame').map((seen) =>
    seen.what === 'frame' ? 'f' : letters[seen.event.type],
  );
  const text = emitted.join('').replace(/f+/g, 'f').replace('O', 'o');
  return attempts.test(text) ? [] : [`the events are not a sequence of attempts: ${text.slice(-40)}`];
};

const connectionsAtOnce = (log: readonly Seen[]): readonly string[] => {
  const open = new Set<number>();
  let requests = 0;
  const wrong: string[] = [];
  for (const seen of log) {
    if (seen.what === 'handshake') open.add(seen.socket);
    if (seen.what === 'gone' || seen.what === 'closed' || seen.what === 'cut') open.delete(seen.socket);
    if (seen.what === 'client-frame' && seen.opcode === 8) open.delete(seen.socket);
    if (seen.what === 'ticket-request') requests += 1;
    if (seen.what === 'ticket-answered') requests -= 1;
    if (seen.what === 'settled' && open.size > 1) wrong.push(`${open.size} connections at once`);
    if (seen.what === 'settled' && requests > 1) wrong.push(`${requests} ticket requests at once`);
  }
  return wrong;
};

const requestSecrets = (log: readonly Seen[], { apiKey }: Subscribed): readonly string[] => {
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

const emittedSecrets = (log: readonly Seen[], { apiKey }: Subscribed): readonly string[] => {
  const secrets = [apiKey, ...issued(log).map(({ ticket }) => ticket)];
  return entriesOf(log, 'event', 'errored').flatMap((seen) => {
    const emitted = seen.what === 'event' ? seen.event : seen.error;
    const text = `${inspect(emitted, { depth: null, showHidden: true })}${JSON.stringify(emitted)}`;
    return secrets.some((secret) => text.includes(secret)) ? [`a secret is in ${seen.what}`] : [];
  });
};

/** Checks that each ticket is used once, with the returned address and subprotocol. */
const ticketUse = (log: readonly Seen[]): readonly string[] => {
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

/** How long a connection may take to close after the end, in ms. */
const CLOSING_MS = 1_500;

const afterTheEnd = (log: readonly Seen[]): readonly string[] => {
  const end = log.findIndex(({ what }) => what === 'unsubscribed' || what === 'errored');
  if (end === -1) return [];
  const after = log.slice(end + 1);
  const emitted = entriesOf(after, 'event', 'frame', 'errored').map(({ what }) => `emitted ${what} after the end`);
  // Requests that are already under way may still arrive.
  const settled = after.findIndex(({ what }) => what === 'settled');
  if (settled === -1) return emitted;
  const late = entriesOf(after.slice(settled), 'ticket-request', 'handshake').map(
    ({ what }) => `a ${what} after the end`,
  );
  // A closing handshake takes at most a second, plus the time until the service notices that the socket is closed.
  const endedAt = (log[end] as Seen).at;
  const last = log.findLastIndex(({ what, at }) => what === 'settled' && at > endedAt + CLOSING_MS);
  const open = new Set(entriesOf(log.slice(0, Math.max(0, last)), 'handshake').map(({ socket }) => socket));
  for (const { socket } of entriesOf(log.slice(0, Math.max(0, last)), 'gone')) open.delete(socket);
  return [...emitted, ...late, ...(open.size > 0 ? [`${open.size} sockets are open after the end`] : [])];
};

const verdicts = (log: readonly Seen[], isOwnError: (error: unknown) => boolean): readonly string[] => [
  ...failuresOf(log)
    .filter(({ failure }) => stoppingCodes.includes(failure.code) || failure.verdict === 'stop')
    .map(({ failure }) => `reconnected after ${failure.code}`),
  ...entriesOf(log, 'errored')
    .filter(({ error }) => !isOwnError(error))
    .filter(({ error }) => !(error instanceof TradeFeedError && mayStop(error)))
    .map(({ error }) => `stopped with ${error instanceof TradeFeedError ? error.code : inspect(error)}`),
];

// These feeds have valid options, so `invalid-options` mustn't occur.
const mayStop = (failure: TradeFeedError): boolean =>
  failure.code !== 'invalid-options' && expectedFailure(failure).verdict === 'stop';

const frames = (log: readonly Seen[], { subscription }: Subscribed): readonly string[] => {
  const wrong: string[] = [];
  const received = new Map<number, number>();
  const socketOf = new Map<number, number>();
  let newest = 0;
  for (const { connection, payload } of entriesOf(log, 'frame')) {
    if (payload === undefined) {
      wrong.push('a frame was changed');
      continue;
    }
    const { socket, seq } = payload;
    if (payload.subscription !== subscription) wrong.push('a frame of another subscription');
    if ((socketOf.get(connection) ?? socket) !== socket)
      wrong.push(`connection ${connection} has frames of two sockets`);
    socketOf.set(connection, socket);
    if (connection < newest) wrong.push('a frame of an earlier connection');
    newest = Math.max(newest, connection);
    if (seq !== (received.get(socket) ?? 0) + 1) wrong.push(`frame ${seq} after frame ${received.get(socket) ?? 0}`);
    received.set(socket, seq);
  }
  return [...wrong, ...undelivered(log, received)];
};

/** The number of the newest frame that was sent, by socket. */
const newestSent = (log: readonly Seen[]): ReadonlyMap<number, number> =>
  new Map(entriesOf(log, 'sent').map(({ socket, seq }) => [socket, seq]));

// While the feed runs, every frame sent has arrived once the log is settled, unless the connection was cut.
const undelivered = (log: readonly Seen[], received: ReadonlyMap<number, number>): readonly string[] => {
  if (log.some(({ what }) => what === 'unsubscribed' || what === 'errored')) return [];
  const settled = log.slice(0, log.findLastIndex(({ what }) => what === 'settled') + 1);
  const cut = new Set(entriesOf(settled, 'cut').map(({ socket }) => socket));
  return [...newestSent(settled)]
    .filter(([socket, seq]) => !cut.has(socket) && (received.get(socket) ?? 0) < seq)
    .map(([socket, seq]) => `${seq} frames were sent and ${received.get(socket) ?? 0} delivered`);
};

// All frames sent before a close frame arrive before that is reported.
const lostBeforeClose = (log: readonly Seen[]): readonly string[] => {
  const sent = newestSent(log);
  let last: { readonly socket: number; readonly seq: number } | undefined;
  return entriesOf(log, 'event', 'frame').flatMap((seen) => {
    if (seen.what === 'frame') {
      last = seen.payload;
      return [];
    }
    if (seen.event.type === 'opened') last = undefined;
    if (seen.event.type !== 'disconnected' || last === undefined) return [];
    const { closeCode } = seen.event.failure;
    const missing = (sent.get(last.socket) ?? 0) - last.seq;
    return closeCode !== undefined && closeCode !== 1006 && missing > 0
      ? [`${missing} frames were lost before a close`]
      : [];
  });
};

// A `Retry-After` counts only if the answer arrived.
const floors = (log: readonly Seen[]): readonly string[] => {
  let retryAfterMs = 0;
  let wasAnswered = false;
  return log.flatMap((seen) => {
    if (seen.what === 'ticket-answered' || seen.what === 'handshake-answered') retryAfterMs = seen.retryAfterMs ?? 0;
    if (seen.what !== 'event') return [];
    if (seen.event.type === 'disconnected') wasAnswered = seen.event.failure.status !== undefined;
    if (seen.event.type !== 'reconnecting' || !wasAnswered || seen.event.delayMs >= retryAfterMs) return [];
    return [`waits ${seen.event.delayMs} ms, but Retry-After was ${retryAfterMs} ms`];
  });
};

// No attempt starts before the reported delay is over, and no delay exceeds the policy or `Retry-After`. Goes by the
// events' own times, because a worker may emit several of them together.
const observedDelays = (
  log: readonly Seen[],
  { initialDelayMs, maxDelayMs, earlyMs }: Subscribed,
): readonly string[] => {
  let notBefore = -Infinity;
  let failure: TradeFeedError | undefined;
  return eventsOf(log).flatMap((event) => {
    if (event.type === 'disconnected') failure = event.failure;
    if (event.type === 'reconnecting') {
      notBefore = event.at + event.delayMs - earlyMs;
      const most = Math.max(maxDelayMs, (failure?.retryAfterMs ?? 0) + initialDelayMs, 1);
      return event.delayMs > most ? [`waits ${event.delayMs} ms, but the maximum is ${most}`] : [];
    }
    return event.type === 'ticket-requested' && event.at < notBefore
      ? [`an attempt ${notBefore - event.at} ms too early`]
      : [];
  });
};

const zeros = (log: readonly Seen[], { stableAfterMs }: Subscribed): readonly string[] => {
  let mayBeZero = true;
  return eventsOf(log).flatMap((event) => {
    if (event.type === 'disconnected' && event.failure.stage === 'stream' && event.failure.uptimeMs >= stableAfterMs)
      mayBeZero = true;
    if (event.type !== 'reconnecting' || event.delayMs > 0) return [];
    const wrong = mayBeZero ? [] : ['a second zero delay without a stable connection'];
    mayBeZero = false;
    return wrong;
  });
};

type RuleCheck = (log: readonly Seen[], facts: Subscribed) => readonly string[];

/** The ten rules of the feed, as far as the log of one subscription can show them. */
const rules: Readonly<Record<string, RuleCheck>> = {
  '1: one attempt at a time, with one open connection, and a gap after each but the first': (log) => [
    ...grammar(log),
    ...connectionsAtOnce(log),
  ],
  '2: the key is only in the ticket request, the ticket only in the handshake': (log, facts) => [
    ...requestSecrets(log, facts),
    ...emittedSecrets(log, facts),
  ],
  '3: a ticket is used once and unchanged': (log) => ticketUse(log),
  '4: after the end nothing is emitted, and everything is released': (log) => afterTheEnd(log),
  '5: frames arrive once, in order and unchanged': (log, facts) => [...frames(log, facts), ...lostBeforeClose(log)],
  '6: the client sends no message': (log) =>
    entriesOf(log, 'client-frame')
      .filter(({ opcode }) => ![8, 9, 10].includes(opcode))
      .map(({ opcode }) => `the client sent a frame with opcode ${opcode}`),
  '7: delays are observed, and there are never two zero delays in a row': (log, facts) => [
    ...floors(log),
    ...observedDelays(log, facts),
    ...zeros(log, facts),
  ],
  '8: an exception of the consumer is not a failure of the feed': (log, { isOwnError }) =>
    failuresOf(log)
      .filter(({ failure }) => isOwnError(failure) || isOwnError(failure.cause))
      .map(({ failure }) => `an exception of the consumer was reported as ${failure.code}`),
  'the failure table: the feed stops for a verdict of stop only': (log, { isOwnError }) => verdicts(log, isOwnError),
};

/** Checks the log of one subscription against the ten rules. Returns each violation once, with the name of the rule. */
export const violations = (log: readonly Seen[], facts: Subscribed): readonly string[] =>
  Object.entries(rules).flatMap(([rule, check]) => [...new Set(check(log, facts))].map((wrong) => `${rule}: ${wrong}`));
