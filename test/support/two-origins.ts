import { type FeedEvent, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { optionsFor, until } from './feed.js';
import { type Gate, type Fate, portOf, startGate } from './gate.js';
import {
  accept,
  close,
  type HandshakeStep,
  issue,
  startWire,
  text,
  type TicketStep,
  type Wire,
  type WireScript,
} from './wire.js';

/** A service whose tickets come from one origin, and whose streams are at another, behind a gate. */
export interface TwoOrigins extends AsyncDisposable {
  readonly baseUrl: string;
  readonly tickets: Wire;
  readonly stream: Wire;
  readonly gate: Gate;
  readonly wssUrl: string;
}

/** Issues tickets that lead to the stream. A step that does more calls it. */
export type Issue = TicketStep;

/** Starts it. `tickets` gets the step that issues a ticket for the stream; `fates` of the gate default to the stream itself. */
export const startTwoOrigins = async ({
  tickets = (granted) => [granted],
  fates = (stream) => [stream],
  ...script
}: Omit<WireScript, 'ticket'> & {
  readonly tickets?: (granted: Issue, gate: Gate) => readonly TicketStep[];
  readonly fates?: (stream: Fate) => readonly Fate[];
} = {}): Promise<TwoOrigins> => {
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

/** Every connection counts as stable: a renew follows at once. */
export const stable: TradeFeedOptions['backoff'] = { stableAfterMs: 0 };
/** Opens, sends a frame, and closes: access expired. */
export const expired: HandshakeStep = accept(text('a frame'), close(4003, 'access expired'));
/** Opens, and sends a frame. */
export const frames = accept(text('a frame'));

/** Gives the event loop a few turns. */
export const turns = async (count = 20): Promise<void> => {
  for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve));
};
/** Waits until something holds. */
export const when = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await turns(1);
};
/** Does it once something holds. */
export const after =
  (holds: () => boolean, step: TicketStep): TicketStep =>
  (response, wire, n) =>
    void when(holds).then(() => step(response, wire, n));

/** Runs a feed until its n-th connection opens. */
export const opened = async (
  service: TwoOrigins,
  count: number,
  options: TradeFeedOptions = {},
): Promise<FeedEvent[]> => {
  const events$ = tradeFeedEvents$('market', optionsFor(service, { backoff: stable, ...options }));
  return until(events$, (event) => event.type === 'opened' && event.connection === count);
};
/** The codes of the failures that were told of. */
export const failuresOf = (events: readonly FeedEvent[]): unknown[] =>
  events.flatMap((event) => (event.type === 'disconnected' ? [event.failure.code] : []));

/** A request that is answered by the end of its connection. */
export const dropped: TicketStep = (response) => response.socket?.destroy();
