/** @lane brokers */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { NatsConnection } from '@nats-io/transport-node';
import { feedLog, type FeedLog } from '../../src/log/index.js';
import { jetStreamLog } from '../../src/nats/index.js';
import { quick, receive, serveFeed } from '../browser/support.js';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import { all, opened, path, startWriter, texts } from '../log/support.js';
import { frame } from '../relay/support.js';
import { itInCi } from '../support/cases.js';
import { waitFor } from '../support/wait-for.js';

const testWith = (test: typeof itInCi, open: () => FeedLog): void => {
  test('fills relays that start again: a page continues without a gap, a frame lost or a frame twice', async () => {
    const log = open();
    const writer = startWriter(log);
    let sent = 0;
    const send = (count: number) => {
      for (const end = sent + count; sent < end; sent += 1) writer.send(frame(`{"n":${sent}}`, Date.now()));
    };
    writer.send(opened(Date.now()));
    send(1);
    await waitFor(async () => (await all(log).catch(() => [])).length > 1);
    const relayed = (port?: number) => serveFeed(log.read$(), { lingerMs: Infinity }, {}, port);
    let { relay, web } = await relayed();
    relay.hold();
    await waitFor(() => relay.status().stored.events >= 2);
    const page = receive(web.url, quick);
    for (let restart = 0; restart < 3; restart += 1) {
      await waitFor(() => relay.status().clients.length === 1);
      send(3);
      await waitFor(() => page.frames.length === sent - 1);
      const { port } = web;
      relay.close();
      await web[Symbol.asyncDispose]();
      // No relay sends these.
      send(4);
      ({ relay, web } = await relayed(port));
      relay.hold();
    }
    await waitFor(() => page.frames.length === sent - 1);
    await writer.end();
    expect(page.frames.map((each) => each.text())).toEqual(texts(1, sent));
    expect(page.events.filter(({ type }) => type === 'gap')).toEqual([]);
  });
};

describe('a log in a folder', () => testWith(it, () => feedLog(path())));

describeInstalled('nats', 'a log on JetStream', () => {
  let server: RealServer;
  let connection: NatsConnection;
  beforeAll(async () => {
    server = await startServer('nats');
    connection = await server.nats();
  });
  afterAll(() => server.stop());
  testWith(itInCi, () => jetStreamLog(connection, { name: 'relayed' }));
});
