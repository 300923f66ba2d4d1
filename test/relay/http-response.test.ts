import { afterEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type Http2Server, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Subject } from 'rxjs';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createRelay, relayHandler } from '../../src/relay/index.js';
import { frame } from './support.js';
import { waitFor } from '../support/wait-for.js';

// The tests of the handler cover HTTP/1.1. These cover the differences of HTTP/2.
let server: Http2Server | undefined;
afterEach(async () => {
  server?.close();
  if (server?.listening) await once(server, 'close');
});

const serve = async (authorize: () => boolean | Promise<boolean>) => {
  const source = new Subject<RelayedEvent>();
  const relay = createRelay(source, { batchMs: 0, heartbeatMs: 20 });
  const handler = relayHandler(relay, { authorize });
  server = createServer((request: Http2ServerRequest, response: Http2ServerResponse) =>
    handler(request as unknown as IncomingMessage, response as unknown as ServerResponse),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const stream = session.request({ ':path': '/' });
  stream.on('error', () => undefined);
  return { source, relay, session, stream };
};

it('waits over HTTP/2 for a client that does not read, and ends its stream when it is stuck', async () => {
  const { source, relay, session, stream } = await serve(() => true);
  await once(stream, 'response');
  const types: string[] = [];
  relay.events$.subscribe(({ type }) => types.push(type));
  for (let n = 0; n < 500; n += 1) source.next(frame('x'.repeat(4_096)));
  await waitFor(() => types.includes('client-left'));
  expect(types).toEqual(['client-stuck', 'client-left']);
  expect(relay.status().clients).toEqual([]);
  relay.close();
  session.destroy();
});

it('streams over HTTP/2, and ignores a client that left during its authorization', async () => {
  let allow: (isAllowed: boolean) => void = () => undefined;
  const { source, relay, session, stream } = await serve(() => new Promise((resolve) => (allow = resolve)));
  await waitFor(() => allow.length === 1);
  stream.close();
  await once(stream, 'close');
  const second = session.request({ ':path': '/' });
  const first = allow;
  await waitFor(() => allow !== first);
  first(true);
  allow(true);
  let text = '';
  second.setEncoding('utf8').on('data', (more: string) => (text += more));
  await waitFor(() => relay.status().clients.length > 0);
  source.next(frame('hello'));
  await waitFor(() => text.includes('"data":"hello"'));
  expect(relay.status().clients).toHaveLength(1);
  relay.close();
  session.destroy();
});
