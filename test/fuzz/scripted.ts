import { afterAll, beforeAll, expect } from '@jest/globals';
import { createServer, type Socket } from 'node:net';
import { TradeFeedError, type TradeFeedOptions } from 'rx-trade-feed';
import { everythingIn } from '../support/everything-in.js';
import { expectedFailure } from '../support/failure-table.js';
import { closed, type Outcome, outcomeOf } from '../support/feed.js';
import { listen } from '../support/listen.js';
import { acceptOf, switchingFor } from '../support/wire.js';
import { BOUND_MS, within } from './fuzz.js';

/** The secrets of every case. */
export const plantedKey = 'planted-key-5be1';
export const plantedTicket = 'planted-ticket-90c4';

/** What a server does to a connection after its last byte. */
export type End = 'end' | 'reset' | 'stay';

/** Returns the bytes of an answer, one item for each write of the server. Receives the request and the address of the stream. */
export interface Answer {
  readonly bytes: (request: string, wssUrl: string) => readonly Buffer[];
  readonly end: End;
}

/** The answers to the two requests of an attempt. */
export interface Script {
  readonly ticket: Answer;
  readonly handshake: Answer;
}

const keyIn = (request: string): string => /sec-websocket-key: *(\S+)/i.exec(request)?.[1] ?? '';

/** The `Sec-WebSocket-Accept` that answers a handshake, and the headers that accept it. */
export const acceptFor = (request: string): string => acceptOf(keyIn(request));
export const goodHead = (request: string): string => switchingFor(keyIn(request));

/** The fields of a valid ticket. */
export const ticketFields = (wssUrl: string) => ({
  ticket: plantedTicket,
  token_type: 'Bearer',
  expires_at: '2999-01-01T00:00:00Z',
  wss_url: wssUrl,
  feed: 'market',
  subprotocol: 'mmp.trade-batch.v1',
});

/** A valid HTTP answer. */
export const httpAnswer = (status: string, body: Buffer, headers: readonly string[] = []): Buffer =>
  Buffer.concat([
    Buffer.from([`HTTP/1.1 ${status}`, `Content-Length: ${body.length}`, ...headers, '', ''].join('\r\n'), 'latin1'),
    body,
  ]);

/** Issues a valid ticket. */
export const goodTicket: Answer = {
  bytes: (_request, wssUrl) => [httpAnswer('200 OK', Buffer.from(JSON.stringify(ticketFields(wssUrl))))],
  end: 'stay',
};

/** The result of a case: the outcome, its code, and the requests. */
export interface Ran extends Outcome {
  readonly code: string;
  readonly requests: readonly string[];
}

interface Case {
  readonly script: Script;
  readonly sockets: Set<Socket>;
  readonly requests: string[];
}

/** Starts a TCP server for a file's concurrent cases, which use separate paths. Stops it after the last test. */
export const scriptedServer = () => {
  const cases = new Map<string, Case>();
  let made = 0;
  let running: Awaited<ReturnType<typeof listen>>;
  const server = createServer((socket) => {
    let heard = '';
    socket.setNoDelay().on('data', (chunk: Buffer) => {
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
      const answer = one.script[request.startsWith('POST') ? 'ticket' : 'handshake'];
      void play(socket, answer.bytes(request, `ws://127.0.0.1:${running.port}${path}`), answer.end);
    });
  });
  beforeAll(async () => void (running = await listen(server)));
  afterAll(() => running[Symbol.asyncDispose]());

  /** Runs a feed's first attempt against a script. Returns the outcome once all connections are closed. */
  const run = async (script: Script, options: TradeFeedOptions = {}): Promise<Ran> => {
    const path = `/c${(made += 1)}`;
    const one: Case = { script, sockets: new Set(), requests: [] };
    cases.set(path, one);
    // Keeps connections from ever counting as stable, so that no reconnect is immediate.
    const backoff = { initialDelayMs: 1, maxDelayMs: 5, stableAfterMs: 1e9, ...options.backoff };
    const settings = { baseUrl: `http://127.0.0.1:${running.port}${path}`, apiKey: plantedKey, ...options, backoff };
    const outcome = await within(BOUND_MS, 'a feed', outcomeOf(settings));
    await within(BOUND_MS, 'the end of its connections', Promise.all([...one.sockets].map(closed)));
    cases.delete(path);
    return { ...outcome, code: checkOutcome(outcome), requests: one.requests };
  };
  return { run };
};

const endOfRequest = (heard: string): number | undefined => {
  const head = heard.indexOf('\r\n\r\n') + 4;
  const end = head + Number(/^[^]*?\r\ncontent-length: *(\d+)\r\n/i.exec(heard.slice(0, head))?.[1] ?? 0);
  return head > 3 && heard.length >= end ? end : undefined;
};

/** Sends each piece in a separate write, then ends the connection as requested. */
export const play = async (socket: Socket, pieces: readonly Buffer[], end: End): Promise<void> => {
  for (const piece of pieces) {
    if (socket.destroyed) return;
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (end === 'end') socket.end();
  if (end === 'reset') socket.resetAndDestroy();
};

// No server can cause these: the options are valid, and there's no TLS.
const notFromServer = ['api-key-unavailable', 'invalid-options', 'retries-exhausted', 'untrusted-certificate'];

// Characters that could move the cursor, forge a log line, or reverse text.
const harmful = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;
const longestTimerMs = 2 ** 31 - 1;

/** Checks the rules that hold however an attempt ends at any server. Returns the code. */
const checkOutcome = ({ failure, goesOn, delayMs, events }: Outcome): string => {
  expect(failure).toBeInstanceOf(TradeFeedError);
  const { code, stage, verdict, message, advice, retryAfterMs } = failure;
  expect({ stage, code, verdict }).toEqual(expectedFailure(failure));
  expect(notFromServer).not.toContain(code);
  for (const text of [message, advice]) {
    expect(text.length).toBeGreaterThan(10);
    expect(text).not.toMatch(harmful);
  }
  expect(goesOn).toBe(verdict !== 'stop');
  if (retryAfterMs !== undefined) expect([retryAfterMs >= 0, Number.isFinite(retryAfterMs)]).toEqual([true, true]);
  if (delayMs !== undefined) {
    expect(delayMs).toBeGreaterThanOrEqual(Math.max(1, Math.min(retryAfterMs ?? 0, longestTimerMs)));
    expect(delayMs).toBeLessThanOrEqual(longestTimerMs);
  }
  // A frame contains exactly the bytes that the service sent.
  const told = everythingIn([failure, String(failure.stack), ...events.filter(({ type }) => type !== 'frame')]);
  for (const secret of [plantedKey, plantedTicket]) expect(told.toLowerCase()).not.toContain(secret);
  return code;
};
