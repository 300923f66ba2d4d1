import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage, type Server, createServer } from 'node:http';
import { connect, constants, createServer as createHttp2Server, type Http2ServerRequest } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { createRelay, relayHandler, type RelayOptions } from '../../src/relay/index.js';
import { Raw, Source } from './support.js';
import { waitFor } from '../support/wait-for.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A replica: a server with a relay. */
const replica = async (options: RelayOptions = {}) => {
  const source = new Source();
  const relay = createRelay(source.events$, { batchMs: 0, ...options });
  const server = createServer(relayHandler(relay, { authorize: () => true })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    relay.close();
    server.close();
    server.closeAllConnections();
  });
  return { source, relay, server, port: portOf(server) };
};

const portOf = (server: Pick<Server, 'address'>): number => (server.address() as AddressInfo).port;

/** Sends a request over an agent that reuses connections, like a browser. */
const ask = async (agent: Agent, port: number): Promise<{ response: IncomingMessage; socket: Socket }> => {
  const request = get({ agent, host: '127.0.0.1', port, path: '/feed' });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { response: response.setEncoding('utf8'), socket: response.socket };
};

const textOf = async (response: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const part of response) text += String(part);
  return text;
};

const keepAliveAgent = (): Agent => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  closing.push(() => agent.destroy());
  return agent;
};

describe('a relay that is closed', () => {
  it('sends each client the remaining events, then `connect-again` with its position, then the end', async () => {
    const { source, relay, port } = await replica({ batchMs: 1_000_000 });
    const { response } = await ask(keepAliveAgent(), port);
    const text = textOf(response);
    await waitFor(() => source.active === 1);
    source.frames('a', 'b');
    relay.close();
    expect(await text).toMatch(
      /^event: hello\n[^]*"data":"a"[^]*"data":"b"[^]*\n\nevent: connect-again\nid: \S+\.2\.2\.1000000\ndata: (\{.*\})\n\n$/,
    );
    expect(await text).toContain('"code":"relay-closing","verdict":"backoff"');
    expect(await text).not.toContain('complete');
  });

  it('closes the connection after a stream and after a refusal, so that a page does not reach it again', async () => {
    const { source, relay, port } = await replica();
    const agent = keepAliveAgent();
    const first = await ask(agent, port);
    expect(first.response.headers.connection).toBe('close');
    await waitFor(() => source.active === 1);
    const text = textOf(first.response);
    relay.close();
    await text;
    const refused = await ask(agent, port);
    expect(refused.socket).not.toBe(first.socket);
    expect([refused.response.statusCode, refused.response.headers]).toMatchObject([
      503,
      { connection: 'close', 'retry-after': '1' },
    ]);
    await textOf(refused.response);
    const again = await ask(agent, port);
    expect(again.socket).not.toBe(refused.socket);
    expect(await textOf(again.response)).toContain('Retry later.');
  });

  it('lets `server.close()` finish even if a client does not read', async () => {
    const { source, relay, server, port } = await replica({ capacityBytes: 64 * 1024 * 1024 });
    const reader = await ask(keepAliveAgent(), port);
    const read = textOf(reader.response);
    const stuck = await Raw.get(port);
    await stuck.until((text) => text.includes('event: hello'));
    stuck.socket.pause();
    // More than the socket buffers of the kernel take.
    for (let n = 0; n < 20; n += 1) source.frames('x'.repeat(1_000_000));
    await waitFor(() => relay.status().clients.every(({ sent }) => sent > 0));
    const closed = once(server, 'close');
    relay.close();
    server.close();
    expect((await read).split('"type":"frame"')).toHaveLength(21);
    await closed;
    stuck.socket.resume();
    expect(await stuck.closed()).not.toContain('connect-again');
  });

  it.each<[string, RelayOptions, boolean]>([
    ['after the grace period', {}, false],
    ['when it is stuck', { heartbeatMs: 20 }, true],
  ])('lets `server.close()` finish over HTTP/2 even if a client does not read: %s', async (_when, options, isStuck) => {
    const source = new Source();
    const relay = createRelay(source.events$, { batchMs: 0, ...options });
    const types: string[] = [];
    relay.events$.subscribe(({ type }) => types.push(type));
    const handler = relayHandler(relay, { authorize: () => true });
    const server = createHttp2Server((request: Http2ServerRequest, response) =>
      handler(request as never, response as never),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = connect(`http://127.0.0.1:${portOf(server)}`);
    closing.push(() => session.destroy());
    const stream = session.request({ ':path': '/feed' });
    const isOver = once(stream, 'close');
    await once(stream, 'response');
    await waitFor(() => source.active === 1);
    // More than the flow-control window of the stream.
    for (let n = 0; n < 100; n += 1) source.frames('x'.repeat(5_000));
    await waitFor(() => (isStuck ? types.includes('client-left') : relay.status().clients[0]!.sent > 0));
    const closed = once(server, 'close');
    relay.close();
    session.close();
    server.close();
    await closed;
    await isOver;
    expect(stream.rstCode).toBe(constants.NGHTTP2_CANCEL);
    expect(types).toEqual(['client-joined', ...(isStuck ? ['client-stuck'] : []), 'client-left']);
  });

  it('over HTTP/2 allows no further stream on the connection', async () => {
    const source = new Source();
    const relay = createRelay(source.events$, { batchMs: 0 });
    const handler = relayHandler(relay, { authorize: () => true });
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    closing.push(() => process.off('warning', note));
    const server = createHttp2Server((request: Http2ServerRequest, response) =>
      handler(request as never, response as never),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = connect(`http://127.0.0.1:${portOf(server)}`);
    closing.push(() => {
      session.destroy();
      server.close();
    });
    const stream = session.request({ ':path': '/feed' });
    await once(stream, 'response');
    await waitFor(() => source.active === 1);
    let text = '';
    stream.setEncoding('utf8').on('data', (part: string) => (text += part));
    const isOver = Promise.all([once(stream, 'close'), once(session, 'close')]);
    relay.close();
    await isOver;
    expect(text).toMatch(/event: connect-again\nid: .*\ndata: .*"relay-closing".*\n\n$/);

    const other = connect(`http://127.0.0.1:${portOf(server)}`);
    const refused = other.request({ ':path': '/feed' });
    const isRefused = once(other, 'close');
    const [head] = (await once(refused, 'response')) as [Record<string, unknown>];
    expect([head[':status'], head['retry-after']]).toEqual([503, '1']);
    refused.resume();
    await isRefused;
    expect(warnings).toEqual([]);
  });
});

describe('a deploy', () => {
  it('lets a page resume at another replica: it does not reuse the connection to the closed one', async () => {
    const [a, b] = [await replica(), await replica()];
    // A load balancer: each new connection goes to the replica that is not closing.
    let target = a;
    const front = createServer((request, response) => target.server.emit('request', request, response)).listen(
      0,
      '127.0.0.1',
    );
    await once(front, 'listening');
    closing.push(() => {
      front.close();
      front.closeAllConnections();
    });
    front.on('connection', (socket: Socket & { replica?: typeof a }) => (socket.replica = target));
    const reached: (typeof a | undefined)[] = [];
    front.on('request', ({ socket }) => reached.push((socket as Socket & { replica?: typeof a }).replica));
    const agent = keepAliveAgent();
    const first = await ask(agent, portOf(front));
    const text = textOf(first.response);
    await waitFor(() => a.source.active === 1);
    target = b;
    a.relay.close();
    expect(await text).toContain('event: connect-again');
    const second = await ask(agent, portOf(front));
    await once(second.response, 'data');
    expect(reached.map((each) => (each === a ? 'a' : 'b'))).toEqual(['a', 'b']);
    expect([a.source.active, b.source.active]).toEqual([0, 1]);
    second.response.destroy();
  });
});
