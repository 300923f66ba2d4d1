import { bufferTime, filter, fromEvent, interval, map, merge, Observable, retry, share, throwError, timer } from 'rxjs';
import { WebSocket } from 'ws';

/** How often the connection is checked, in ms. The node must send something, at least a pong, until the next check. */
export const pingMs = 15_000;
const longestWaitMs = 30_000;

const subscribe = { jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newPendingTransactions', true] };

/** A node that can't send full pending transactions. Connecting again doesn't help. */
class UnsuitableNode extends Error {
  /** @param {string} what */
  constructor(what) {
    super(`The node ${what}. Use one that sends full transactions to eth_subscribe, such as anvil, geth or reth.`);
  }
}

/**
 * Returns what a message of the node says: `subscribed`, a transaction as JSON, or `undefined` for anything else.
 *
 * @param {string} text
 * @throws UnsuitableNode
 */
const readMessage = (text) => {
  const { id, method, params, error } = JSON.parse(text);
  if (id === subscribe.id && error) throw new UnsuitableNode(`refuses the subscription (${error.message})`);
  if (id === subscribe.id) return 'subscribed';
  if (method !== 'eth_subscription') return undefined;
  if (typeof params.result !== 'object') throw new UnsuitableNode('sends only hashes');
  return JSON.stringify(params.result);
};

/**
 * Emits the pending transactions of one connection to an Ethereum node (JSON-RPC over WebSocket), each as JSON. Errors when the connection ends.
 *
 * @param {string} url
 * @param {() => void} onSubscribed
 * @returns {Observable<string>}
 */
const oneConnection$ = (url, onSubscribed) =>
  new Observable((subscriber) => {
    const socket = new WebSocket(url, { handshakeTimeout: 10_000, maxPayload: 16 * 1024 * 1024 });
    let isAlive = true;
    subscriber.add(
      merge(fromEvent(socket, 'open'), fromEvent(socket, 'message'), fromEvent(socket, 'pong')).subscribe(
        () => (isAlive = true),
      ),
    );
    subscriber.add(
      interval(pingMs).subscribe(() => {
        if (!isAlive) subscriber.error(new Error(`silent for ${pingMs / 1_000} s`));
        else if (socket.readyState === WebSocket.OPEN) socket.ping();
        isAlive = false;
      }),
    );
    socket
      .on('open', () => socket.send(JSON.stringify(subscribe)))
      .on('message', (data) => {
        try {
          const message = readMessage(data.toString());
          if (message === 'subscribed') onSubscribed();
          else if (message !== undefined) subscriber.next(message);
        } catch (error) {
          subscriber.error(error);
        }
      })
      .on('close', (code) => subscriber.error(new Error(`closed with ${code}`)))
      .on('error', (error) => subscriber.error(error));
    // An unfinished handshake ends with an `error`.
    return () =>
      void socket
        .removeAllListeners()
        .on('error', () => undefined)
        .terminate();
  });

/**
 * Emits the pending transactions of a node, and connects again when the connection ends. All subscribers share the connection.
 *
 * @param {string} url
 * @param {(text: string) => void} log
 */
export const nodeTransactions$ = (url, log) => {
  // A path in the address may be a secret.
  const node = `the node at ${new URL(url).host}`;
  return oneConnection$(url, () => log(`${node} sends transactions`)).pipe(
    retry({
      resetOnSuccess: true,
      delay: (error, attempt) => {
        if (error instanceof UnsuitableNode) return throwError(() => error);
        const waitMs = Math.min(longestWaitMs, 250 * 2 ** attempt);
        log(`no connection to ${node}: ${error.message}; connecting again in ${waitMs} ms`);
        return timer(waitMs);
      },
    }),
    share(),
  );
};

/**
 * The payloads of both feeds: `raw` sends each transaction, `market` batches of them.
 *
 * @param {Observable<string>} transactions$
 */
export const sourcesOf = (transactions$) => ({
  raw: transactions$,
  market: transactions$.pipe(
    bufferTime(250, null, 100),
    filter(({ length }) => length > 0),
    map((batch, index) => `{"batch":${index + 1},"transactions":[${batch.join(',')}]}`),
  ),
});
