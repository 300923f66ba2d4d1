import { concat, defer, delay, EMPTY, filter, NEVER, Observable, type SchedulerLike, Subject, takeUntil } from 'rxjs';
import { relayError } from '../../../src/browser/relay-error.js';
import { relayRequest$ as usedRequest$ } from '../../../src/browser/relay-request.js';
import type { Relay, RelayTopic } from '../../../src/relay/index.js';
import { sseText } from '../../../src/relay/relay-message.js';

/** The relay that an address currently leads to; `undefined` while nothing is listening. */
export interface Target {
  readonly relay: Relay | undefined;
  readonly select?: RelayTopic | undefined;
  /** How much of the past a client that has no position receives, in ms. */
  readonly sinceMs?: number | undefined;
}

/** The connections of one client. */
export interface Link {
  /** How long bytes take, in ms. */
  readonly latencyMs: number;
  target: Target;
  /** Ends the current connection. */
  cut(): void;
  /** Loses all bytes of the current connection from now on. */
  stall(): void;
  /** Makes the current connection's client read nothing for some time, so that its response is full. */
  slow(ms: number): void;
}

const links = new Map<
  string,
  { readonly link: Link; readonly connect: (id: string | undefined) => Observable<Uint8Array> }
>();
const encoder = new TextEncoder();

/** Removes all links, before a run. */
export const resetNetwork = (): void => {
  // Imported in jest, pages would send requests over `fetch`, whose promises never resolve in virtual time.
  if ((usedRequest$ as unknown) !== relayRequest$)
    throw new Error('Bundle the simulation: see test/support/simulation.mjs.');
  links.clear();
};

/** Creates the link of an address. */
export const createLink = (url: string, target: Target, latencyMs: number, scheduler: SchedulerLike): Link => {
  let cut = new Subject<never>();
  let isStalled = false;
  let response = new SlowResponse();
  const link: Link = {
    latencyMs,
    target,
    cut: () => cut.error(new TypeError('The connection was reset.')),
    stall: () => (isStalled = true),
    slow: (ms) => {
      const slowed = response;
      slowed.writableNeedDrain = true;
      scheduler.schedule(() => slowed.drain(), ms);
    },
  };
  const connect = (lastEventId: string | undefined) =>
    defer(() => {
      [cut, isStalled] = [new Subject<never>(), false];
      const { relay, select, sinceMs } = link.target;
      const current = (response = new SlowResponse());
      if (relay === undefined) throw new TypeError('The connection was refused.');
      const messages$ = new Observable<Uint8Array>((subscriber) =>
        relay.messages$({ lastEventId, select, sinceMs, response: current }).subscribe({
          next: (message) => subscriber.next(encoder.encode(sseText(message))),
          error: () => subscriber.error(relayError({ status: 503 })),
          complete: () => subscriber.complete(),
        }),
      );
      // After the last message the response ends, which the client sees as the end of the body.
      return concat(
        messages$.pipe(
          delay(latencyMs, scheduler),
          filter(() => !isStalled),
        ),
        defer(() => (isStalled ? NEVER : EMPTY)),
      ).pipe(takeUntil(cut));
    });
  links.set(url, { link, connect });
  return link;
};

/** The part of a response that tells a relay to wait. */
class SlowResponse {
  writableNeedDrain = false;
  readonly #listeners = new Set<() => void>();

  on(_event: 'drain', listener: () => void): void {
    this.#listeners.add(listener);
  }

  off(_event: 'drain', listener: () => void): void {
    this.#listeners.delete(listener);
  }

  drain(): void {
    this.writableNeedDrain = false;
    for (const listener of [...this.#listeners]) listener();
  }

  destroy(): void {
    this.writableNeedDrain = true;
  }
}

/** Replaces the request over `fetch` in the bundle of the simulation. */
export const relayRequest$ = (
  { url }: { readonly url: string },
  lastEventId: string | undefined,
): Observable<Uint8Array> => links.get(url)?.connect(lastEventId) ?? NEVER;
