/**
 * @lane brokers
 * @ci
 */
import { afterAll, beforeAll, expect } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import { type LogClient, logServers } from '../log/log-servers.js';
import { waitFor } from '../support/wait-for.js';
import { durable, numbersIn, received, relayOver, startFeed } from './durable-support.js';
import { Client, inOrder, range, timeIn } from './support.js';

for (const kind of ['nats', 'redis'] as const) {
  const { title, connect } = logServers[kind];

  describeInstalled(kind, `a relay over a log on ${title}`, () => {
    let server: RealServer;
    let writer: LogClient;
    let reader: LogClient;
    beforeAll(async () => {
      server = await startServer(kind);
      [writer, reader] = [await connect(server), await connect(server)];
    });
    afterAll(() => server.stop());

    /** A feed, and a page that has its first ten frames and has left. */
    const visited = async (options: Parameters<LogClient['open']>[1] = {}) => {
      const name = randomUUID();
      const feed = await startFeed(writer.open(name, options));
      const log = reader.open(name);
      const { relay } = relayOver(log);
      const page = new Client(relay);
      await waitFor(() => page.events.length > 0);
      await received(page, await feed.frames(10));
      page.leave();
      relay.close();
      return { feed, log, lastEventId: page.lastEventId };
    };

    durable('continues a page after a restart, although its memory is empty', async () => {
      const { feed, log, lastEventId } = await visited();
      for (let n = 0; n < 20; n += 1) await feed.frames(25);
      const { relay, reports } = relayOver(log);
      const page = new Client(relay, { lastEventId });
      await received(page, 510);
      await received(page, await feed.frames(5));
      expect(numbersIn(page)).toEqual(range(11, 515));
      expect(page.events.filter(({ type }) => type !== 'frame')).toMatchObject([{ type: 'opened' }]);
      inOrder(page.events.map(timeIn));
      expect(reports.map(({ type }) => type)).toEqual(['client-joined']);
    });

    durable('sends one gap with the exact number for what exceeds `maxReplayBytes`', async () => {
      const { feed, log, lastEventId } = await visited();
      for (let n = 0; n < 20; n += 1) await feed.frames(25, 200);
      const { relay } = relayOver(log, { maxReplayBytes: 50_000 });
      const page = new Client(relay, { lastEventId });
      await received(page, 510);
      const numbers = numbersIn(page);
      expect(numbers).toEqual(range(numbers[0]!, 510));
      expect(page.events.filter(({ type }) => type === 'gap')).toMatchObject([{ missed: numbers[0]! - 11 }]);
      expect(page.batches.reduce((sum, { data }) => sum + data.length, 0)).toBeLessThan(80_000);
    });

    durable('continues over writers that restarted', async () => {
      const { feed, log, lastEventId } = await visited();
      await feed.frames(100);
      await feed.end();
      const second = await startFeed(log);
      await second.frames(100);
      const { relay } = relayOver(log);
      const page = new Client(relay, { lastEventId });
      await received(page, 100);
      expect(numbersIn(page)).toEqual([...range(11, 110), ...range(1, 100)]);
    });
  });
}
