import type { Agent } from 'node:http';
import { fromEvent, interval, merge, noop, Observable } from 'rxjs';
import { WebSocket } from 'ws';
import { createTradeFeedError, type TradeFeedError } from '../../index.js';
import { CliError } from '../cli-error.js';
import { ExitCode } from '../exit-code.js';

/** A connection to an Ethereum node. */
export interface NodeConnection {
  readonly url: string;
  readonly agent?: Agent | undefined;
  /** Called when the node has accepted the subscription. */
  readonly onSubscribed: () => void;
}

/** How often the connection is checked with a ping, in ms. The node must send something until the next ping. */
export const pingMs = 15_000;
const handshakeTimeout = 10_000;
const maxPayload = 16 * 1024 * 1024;

const request = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'eth_subscribe',
  params: ['newPendingTransactions', true],
});

/**
 * Subscribes to the pending transactions of an Ethereum node (JSON-RPC over WebSocket), and emits each as JSON, as the node sent its fields.
 *
 * Errors with a `TradeFeedError` when the connection fails, so that `backoff` can connect again. Errors with a CliError when the node does not
 * support such a subscription. Never completes.
 */
export const nodeTransactions$ = ({ url, agent, onSubscribed }: NodeConnection): Observable<string> =>
  new Observable((subscriber) => {
    let subscribedMs: number | undefined;
    const lost = (detail: string): void => subscriber.error(connectionFailure(detail, subscribedMs));
    const socket = new WebSocket(url, { agent, handshakeTimeout, maxPayload, perMessageDeflate: false });
    socket
      .on('open', () => socket.send(request))
      .on('error', (error: NodeJS.ErrnoException) => lost(error.message || String(error.code)))
      .on('close', (code, reason) => lost(`closed with ${[code, reason.toString()].filter(Boolean).join(' ')}`))
      .on('message', (data) => {
        const message = messageIn((data as Buffer).toString());
        if (message === 'subscribed') {
          subscribedMs = performance.now();
          onSubscribed();
        } else if (message instanceof Error) subscriber.error(message);
        else if (message !== undefined) subscriber.next(message.transaction);
      });
    subscriber.add(checks$(socket).subscribe(() => lost(`silent for ${pingMs / 1_000} s`)));
    return () => {
      socket.removeAllListeners().on('error', noop).terminate();
    };
  });

/** Sends pings, and emits when nothing arrived between two of them. */
const checks$ = (socket: WebSocket): Observable<void> =>
  new Observable((subscriber) => {
    let isAlive = true;
    const arrivals$ = merge(fromEvent(socket, 'open'), fromEvent(socket, 'message'), fromEvent(socket, 'pong'));
    subscriber.add(arrivals$.subscribe(() => (isAlive = true)));
    subscriber.add(
      interval(pingMs).subscribe(() => {
        if (!isAlive) subscriber.next();
        else if (socket.readyState === WebSocket.OPEN) socket.ping();
        isAlive = false;
      }),
    );
  });

// The codes are those of the feed, so that its backoff applies: it resets after a stable connection only.
const connectionFailure = (detail: string, subscribedMs: number | undefined): TradeFeedError =>
  subscribedMs === undefined
    ? createTradeFeedError({ stage: 'handshake', code: 'handshake-unreachable', detail })
    : createTradeFeedError({
        stage: 'stream',
        code: 'connection-lost',
        detail,
        uptimeMs: performance.now() - subscribedMs,
      });

type Message = 'subscribed' | { readonly transaction: string } | Error | undefined;

/** Reads a message of the node. `undefined`: a message that does not concern the subscription. */
const messageIn = (text: string): Message => {
  const { id, error, method, params } = objectIn(text);
  if (method === 'eth_subscription') {
    const result = (params as { readonly result?: unknown } | undefined)?.result;
    return typeof result === 'object' && result !== null
      ? { transaction: JSON.stringify(result) }
      : refused('sends only hashes');
  }
  if (id !== 1) return undefined;
  return error === undefined ? 'subscribed' : refused(`refuses the subscription (${errorText(error)})`);
};

const objectIn = (text: string): Readonly<Record<string, unknown>> => {
  try {
    return Object(JSON.parse(text)) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
};

const errorText = (error: unknown): string => String((error as { readonly message?: unknown } | null)?.message);

const refused = (what: string): CliError =>
  new CliError(
    ExitCode.refused,
    `The node ${what}. Use a node that supports eth_subscribe with newPendingTransactions and full transactions, such as anvil, geth or reth.`,
  );
