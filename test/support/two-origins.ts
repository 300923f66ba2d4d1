import { type FeedEvent, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { certificateFor } from './certificate.js';
import { optionsFor, until } from './feed.js';
import { type Gate, type Fate, portOf, startGate } from './gate.js';
import { accept, close, type HandshakeStep, issue, startWire, text, type TicketStep, type WireScript } from './wire.js';
import { waitFor } from './wait-for.js';

export const tls = await certificateFor();
/** Options of a feed that trusts a service with `tls`. */
export const ca = { tls: { ca: tls.cert } };

/** A feed's two transports, as parts of a script. */
export const transports = [
  ['TCP', {}],
  ['TLS', { tls }],
] as const;

export type TwoOrigins = Awaited<ReturnType<typeof startTwoOrigins>>;

/** Starts a service with the ticket endpoint at one origin, and the stream at another one that a gate controls. `tickets` receives the step that issues a ticket for the stream; by default the gate forwards to the stream. */
export const startTwoOrigins = async ({
  tickets = (issueTicket) => [issueTicket],
  fates = (stream) => [stream],
  ...script
}: Omit<WireScript, 'ticket'> & {
  readonly tickets?: (issueTicket: TicketStep, gate: Gate) => readonly TicketStep[];
  readonly fates?: (stream: Fate) => readonly Fate[];
} = {}) => {
  const stream = await startWire(script);
  const gate = await startGate(fates({ port: portOf(stream.wssUrl) }));
  const wssUrl = `${script.tls ? 'wss' : 'ws'}://127.0.0.1:${gate.port}/ws`;
  const wire = await startWire({
    ...(script.tls && { tls: script.tls }),
    ticket: tickets(issue({ wss_url: wssUrl }), gate),
  });
  return {
    baseUrl: wire.baseUrl,
    tickets: wire,
    stream,
    gate,
    wssUrl,
    [Symbol.asyncDispose]: async () => {
      await gate[Symbol.asyncDispose]();
      await stream[Symbol.asyncDispose]();
      await wire[Symbol.asyncDispose]();
    },
  };
};

/** Makes every connection count as stable, so that a renew happens at once. */
export const stable: TradeFeedOptions['backoff'] = { stableAfterMs: 0 };
export const expired: HandshakeStep = accept(text('a frame'), close(4003, 'access expired'));
export const frames = accept(text('a frame'));

export const turns = async (count = 20): Promise<void> => {
  for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve));
};
export const later =
  (step: TicketStep): TicketStep =>
  (response, wire, n) =>
    void turns().then(() => step(response, wire, n));
export const after =
  (condition: () => boolean, step: TicketStep): TicketStep =>
  (response, wire, n) =>
    void waitFor(condition).then(() => step(response, wire, n));

/** Runs a feed until the n-th connection opens, and returns the events. */
export const opened = async (
  service: TwoOrigins,
  count: number,
  options: TradeFeedOptions = {},
): Promise<FeedEvent[]> => {
  const events$ = tradeFeedEvents$('market', optionsFor(service, { backoff: stable, ...options }));
  return until(events$, (event) => event.type === 'opened' && event.connection === count);
};
export const failuresOf = (events: readonly FeedEvent[]): unknown[] =>
  events.flatMap((event) => (event.type === 'disconnected' ? [event.failure.code] : []));

export const dropped: TicketStep = (response) => response.socket?.destroy();
