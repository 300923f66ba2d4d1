import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { TradeFeedOptions } from 'rx-trade-feed';
import { closed, outcomeOf, type Outcome } from '../support/feed.js';
import type { End, Script } from './answers.js';
import { checkOutcome, plantedKey } from './failure-rules.js';
import { within } from './fuzz.js';
import { outcomesOf } from './outcomes.js';

/** One TCP server for many concurrent cases. Each case has a separate path. */
export interface Scripted extends AsyncDisposable {
  /** Runs the first attempt of a feed against a script. Returns the outcome after all connections are closed. */
  readonly run: (script: Script, options?: TradeFeedOptions) => Promise<Ran>;
  /** Runs a feed until it stops, the n-th attempt against the n-th script (the last one repeats). Returns the code of each end. */
  readonly runAll: (scripts: readonly Script[], options?: TradeFeedOptions) => Promise<readonly string[]>;
}

/** The result of a case: the outcome, its code, and the requests. */
export interface Ran extends Outcome {
  readonly code: string;
  readonly requests: readonly string[];
}

interface Case {
  readonly scripts: readonly Script[];
  readonly sockets: Set<Socket>;
  readonly requests: string[];
}

/** A case that takes longer hangs, in ms. */
const BOUND_MS = 20_000;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Starts the server on loopback. */
export const startScripted = async (): Promise<Scripted> => {
  const cases = new Map<string, Case>();
  let made = 0;
  const server = createServer((socket) => {
    socket.setNoDelay().on('error', () => undefined);
    let heard = '';
    socket.on('data', (chunk: Buffer) => {
      heard += chunk.toString('latin1');
      const end = endOfRequest(heard);
      if (end === undefined) return;
      const request = heard.slice(0, end);
      heard = heard.slice(end);
      const path = /^\S+ (\/c\d+)/.exec(request)?.[1] ?? '';
      const one = cases.get(path);
      if (one === undefined) return void socket.destroy();
      one.sockets.add(socket);
      one.requests.push(request);
      const attempt = one.requests.filter((text) => text.startsWith('POST')).length;
      const script = one.scripts[Math.min(attempt, one.scripts.length) - 1] as Script;
      const answer = script[request.startsWith('POST') ? 'ticket' : 'handshake'];
      void play(socket, answer.bytes(request, `ws://${host}${path}`), answer.end);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  const ended = async <T>(
    scripts: readonly Script[],
    options: TradeFeedOptions,
    feed: (options: TradeFeedOptions) => Promise<T>,
  ): Promise<[T, Case]> => {
    const path = `/c${(made += 1)}`;
    const one: Case = { scripts, sockets: new Set(), requests: [] };
    cases.set(path, one);
    // No connection is stable on any machine, so no reconnect is immediate.
    const backoff = { initialDelayMs: 1, maxDelayMs: 5, stableAfterMs: 1e9, ...options.backoff };
    const settings = { baseUrl: `http://${host}${path}`, apiKey: plantedKey, ...options, backoff };
    const outcome = await within(BOUND_MS, 'a feed', feed(settings));
    await within(BOUND_MS, 'the end of its connections', Promise.all([...one.sockets].map(closed)));
    cases.delete(path);
    return [outcome, one];
  };

  return {
    run: async (script, options = {}) => {
      const [outcome, { requests }] = await ended([script], options, outcomeOf);
      return { ...outcome, code: checkOutcome(outcome), requests };
    },
    runAll: async (scripts, options = {}) => {
      const [outcomes] = await ended(scripts, options, outcomesOf);
      return outcomes.map(checkOutcome);
    },
    [Symbol.asyncDispose]: async () => {
      for (const { sockets } of cases.values()) for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};

const endOfRequest = (heard: string): number | undefined => {
  const head = heard.indexOf('\r\n\r\n') + 4;
  const end = head + Number(/^[^]*?\r\ncontent-length: *(\d+)\r\n/i.exec(heard.slice(0, head))?.[1] ?? 0);
  return head > 3 && heard.length >= end ? end : undefined;
};

const play = async (socket: Socket, pieces: readonly Buffer[], end: End): Promise<void> => {
  for (const piece of pieces) {
    if (socket.destroyed) return;
    socket.write(piece);
    await turn();
  }
  if (end === 'end') socket.end();
  if (end === 'reset') socket.resetAndDestroy();
};
