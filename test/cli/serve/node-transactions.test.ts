import { describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Subscription } from 'rxjs';
import { nodeTransactions$, pingMs } from '../../../src/cli/serve/node-transactions.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { waitFor } from '../../support/wait-for.js';
import { startNode } from '../support/scripted-node.js';

interface Subscribed extends Disposable {
  readonly transactions: string[];
  readonly subscribed: () => number;
  readonly error: Promise<unknown>;
}

const subscribe = (url: string): Subscribed => {
  const transactions: string[] = [];
  let subscribed = 0;
  let subscription: Subscription | undefined;
  const error = new Promise((resolve) => {
    subscription = nodeTransactions$({ url, onSubscribed: () => (subscribed += 1) }).subscribe({
      next: (transaction) => transactions.push(transaction),
      error: resolve,
    });
  });
  return {
    transactions,
    subscribed: () => subscribed,
    error,
    [Symbol.dispose]: () => subscription?.unsubscribe(),
  };
};

describe('nodeTransactions$', () => {
  it('subscribes to full pending transactions, and emits each with all its fields', async () => {
    await using node = await startNode();
    using client = subscribe(node.url);
    await waitFor(() => client.subscribed() === 1);
    expect(node.requests.map((text) => JSON.parse(text) as unknown)).toEqual([
      { jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newPendingTransactions', true] },
    ]);
    for (const text of [
      'no JSON',
      'null',
      '{}',
      '{"id":7,"result":"0x1"}',
      '{"method":"other","params":{"result":{}}}',
    ])
      node.sendText(text);
    node.send({ hash: '0x1', value: '0xde0b6b3a7640000', input: '0x', accessList: [] });
    node.send({ hash: '0x2' });
    await waitFor(() => client.transactions.length === 2);
    expect(client.transactions).toEqual([
      '{"hash":"0x1","value":"0xde0b6b3a7640000","input":"0x","accessList":[]}',
      '{"hash":"0x2"}',
    ]);
  });

  it('closes the connection when it is unsubscribed, also before it is open', async () => {
    await using node = await startNode();
    subscribe(node.url)[Symbol.dispose]();
    const client = subscribe(node.url);
    await waitFor(() => client.subscribed() === 1);
    client[Symbol.dispose]();
    await waitFor(() => node.sockets.size === 0);
    expect(node.requests).toHaveLength(1);
  });

  it.each([
    [
      'refuses the subscription',
      { error: { message: 'method not found' } },
      /^The node refuses .*\(method not found\)\. Use a node/,
    ],
    ['sends only hashes', { result: '0x1' }, /^The node sends only hashes\. Use a node/],
  ])('stops if the node %s', async (_, answer, message) => {
    await using node = await startNode(answer);
    using client = subscribe(node.url);
    await waitFor(() => node.requests.length === 1);
    node.send('0xhash');
    expect(await client.error).toMatchObject({
      name: 'CliError',
      exitCode: 5,
      message: expect.stringMatching(message),
    });
  });

  it('reports a connection that ends, and how long it was open', async () => {
    await using node = await startNode();
    using client = subscribe(node.url);
    await waitFor(() => client.subscribed() === 1);
    for (const socket of node.sockets) socket.close(1001, 'going away');
    expect(await client.error).toMatchObject({
      code: 'connection-lost',
      verdict: 'renew',
      detail: 'closed with 1001 going away',
      uptimeMs: expect.any(Number),
    });
  });

  it('reports a node that is not there, and an answer that is no WebSocket', async () => {
    const node = await startNode();
    await node[Symbol.asyncDispose]();
    using nowhere = subscribe(node.url);
    expect(await nowhere.error).toMatchObject({
      code: 'handshake-unreachable',
      verdict: 'backoff',
      detail: `connect ECONNREFUSED 127.0.0.1:${node.port}`,
    });
    const server = createServer().on('upgrade', (_, socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    using refused = subscribe(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(await refused.error).toMatchObject({ detail: 'Unexpected server response: 403' });
    server.close();
    await once(server, 'close');
  });

  it('ends a connection on which nothing arrives, not even a pong', async () => {
    using _timers = fakeTimers();
    await using silent = await startNode(undefined, { autoPong: false });
    await using quiet = await startNode();
    using client = subscribe(silent.url);
    using other = subscribe(quiet.url);
    await waitFor(() => client.subscribed() + other.subscribed() === 2);
    const pings = new Map<string, number>();
    for (const [name, { sockets }] of Object.entries({ silent, quiet }))
      for (const socket of sockets) socket.on('ping', () => pings.set(name, (pings.get(name) ?? 0) + 1));
    jest.advanceTimersByTime(pingMs);
    await waitFor(() => pings.get('silent') === 1 && pings.get('quiet') === 1);
    quiet.send({ n: 1 });
    await waitFor(() => other.transactions.length === 1);
    jest.advanceTimersByTime(pingMs);
    expect(await client.error).toMatchObject({ code: 'connection-lost', detail: 'silent for 15 s' });
    await waitFor(() => pings.get('quiet') === 2);
  });
});
