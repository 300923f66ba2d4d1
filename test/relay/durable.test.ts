import { describe, expect } from '@jest/globals';
import { feedLog } from '../../src/log/index.js';
import { relayReports } from '../../src/protocol/failures/meanings.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { afterEvent, afterFrame, gapOfMissed, noFeed } from '../../src/protocol/feed-state.js';
import { Frame } from '../../src/protocol/frame.js';
import { formatPlace, startOf } from '../../src/protocol/place.js';
import { quick, receive, serveFeed } from '../browser/support.js';
import { path } from '../log/support.js';
import { waitFor } from '../support/wait-for.js';
import { durable, numbersIn, received, relayOver, startFeed } from './durable-support.js';
import { Client, inOrder, range, timeIn } from './support.js';

describe('a relay over a folder', () => {
  durable('continues a page after a restart, although its memory is empty', async () => {
    const feed = await startFeed(feedLog(path()));
    const first = relayOver(feed.log);
    const page = new Client(first.relay);
    await waitFor(() => page.events.length > 0);
    await received(page, await feed.frames(10));
    page.leave();
    first.relay.close();
    await feed.frames(200);
    const { relay, reports } = relayOver(feed.log);
    const again = new Client(relay, { lastEventId: page.lastEventId });
    await received(again, 210);
    await received(again, await feed.frames(5));
    expect(numbersIn(page, again)).toEqual(range(1, 215));
    expect(again.events.map(({ type }) => type)).toEqual(['opened', ...range(1, 205).map(() => 'frame')]);
    inOrder(again.events.map(timeIn));
    expect(reports.filter(({ type }) => type !== 'client-joined')).toEqual([]);
  });

  durable('sends from the log exactly what pages receive live', async () => {
    const feed = await startFeed(feedLog(path(), { segmentBytes: 100_000 }));
    const { relay } = relayOver(feed.log);
    const live = new Client(relay);
    await waitFor(() => live.events.length > 0);
    const id = live.lastEventId;
    const at = Date.now();
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006, reason: 'gone' });
    const data = ['text', '', 'ü\u2028"\\"\n', Buffer.from([0xff, 0xfe]), Buffer.from('{"crc":1}')];
    feed.send(
      ...data.map((each, n) => new Frame('market', Buffer.from(each), n === 3, at + n, 1)),
      { type: 'disconnected', at: at + 5, failure },
      { type: 'reconnecting', at: at + 6, attempt: 1, delayMs: 10 },
      { type: 'ticket-requested', at: at + 7, attempt: 1 },
      { type: 'ticket-issued', at: at + 8, ticket: { expiresAt: at + 60_000 } },
      { type: 'owner-changed', at: at + 8, generation: 2, owner: 'b', cause: 'claim' },
      { type: 'opened', at: at + 9, feed: 'market', connection: 2, completeFrom: at + 9 },
      gapOfMissed({ from: at + 5, to: at + 9, frames: undefined }, relayReports.behind),
      // The clock was set back.
      new Frame('market', Buffer.from('1'), false, at - 60_000, 2),
    );
    await feed.frames(20);
    await received(live, 20);
    const { relay: next } = relayOver(feed.log);
    const page = new Client(next, { lastEventId: id });
    await received(page, 20);
    expect(linesIn(page).slice(1)).toEqual(linesIn(live).slice(1));
    expect(page.events[0]).toMatchObject({ type: 'opened', connection: 1 });
  });

  durable('sends one gap with the exact number for what exceeds `maxReplayBytes`, then the newest events', async () => {
    const feed = await startFeed(feedLog(path(), { segmentBytes: 20_000 }));
    const first = relayOver(feed.log);
    const page = new Client(first.relay);
    await waitFor(() => page.events.length > 0);
    await received(page, await feed.frames(10));
    page.leave();
    await feed.frames(500, 200);
    const { relay, reports } = relayOver(feed.log, { maxReplayBytes: 50_000 });
    const again = new Client(relay, { lastEventId: page.lastEventId });
    await received(again, 510);
    const numbers = numbersIn(again);
    expect(numbers).toEqual(range(numbers[0]!, 510));
    expect(again.events.filter(({ type }) => type !== 'frame')).toMatchObject([
      { type: 'opened' },
      { type: 'gap', missed: numbers[0]! - 11, failure: { code: 'relay-behind' } },
    ]);
    const bytes = again.batches.reduce((sum, { data }) => sum + data.length, 0);
    expect([bytes > 40_000, bytes < 55_000]).toEqual([true, true]);
    expect(reports).toContainEqual(expect.objectContaining({ type: 'client-behind', missed: numbers[0]! - 11 }));
  });

  durable('continues over writers that restarted, and compressed segments', async () => {
    const log = feedLog(path(), { segmentBytes: 5_000, compress: true });
    const first = await startFeed(log);
    const relay = relayOver(log);
    const page = new Client(relay.relay);
    await waitFor(() => page.events.length > 0);
    await received(page, await first.frames(30));
    page.leave();
    await first.frames(100);
    await first.end();
    const second = await startFeed(log);
    await second.frames(100);
    const next = relayOver(log);
    const again = new Client(next.relay, { lastEventId: page.lastEventId });
    await received(again, 100);
    await received(again, await second.frames(1));
    expect(numbersIn(again)).toEqual([...range(31, 130), ...range(1, 101)]);
  });

  durable('says in a gap what retention has removed', async () => {
    const log = feedLog(path(), { segmentBytes: 2_000, maxBytes: 16_000 });
    const feed = await startFeed(log);
    const first = relayOver(log);
    const page = new Client(first.relay);
    await waitFor(() => page.events.length > 0);
    await received(page, await feed.frames(10));
    page.leave();
    for (let n = 0; n < 10; n += 1) await feed.frames(50);
    const next = relayOver(log);
    const again = new Client(next.relay, { lastEventId: page.lastEventId });
    await received(again, 510);
    const numbers = numbersIn(again);
    expect(numbers).toEqual(range(numbers[0]!, 510));
    expect(again.events.filter(({ type }) => type === 'gap')).toMatchObject([{ missed: numbers[0]! - 11 }]);
  });

  durable('ignores a place in another log', async () => {
    const feed = await startFeed(feedLog(path()));
    await feed.frames(10);
    const { relay, reports } = relayOver(feed.log);
    const page = new Client(relay, { lastEventId: formatPlace({ ...startOf('other'), offset: 5, at: Date.now() }) });
    await waitFor(() => page.events.length > 0);
    await received(page, await feed.frames(5));
    expect(numbersIn(page)).toEqual(range(11, 15));
    expect(reports.map(({ type }) => type)).not.toContain('replay-failed');
  });
});

/** The lines of all messages, without watermarks. */
const linesIn = ({ batches }: Client): readonly string[] =>
  batches.flatMap(({ data }) => data.split('\n')).filter((line) => !line.startsWith('{"type":"watermark"'));

describe('a page that a browser reads', () => {
  durable('sees neither a loss nor a gap over restarts of its relay', async () => {
    const feed = await startFeed(feedLog(path()));
    const options = { log: feed.log, lingerMs: Infinity };
    let server = await serveFeed(feed.log.read$({ from: 'latest' }), options);
    const { port } = server.web;
    const page = receive(server.web.url, quick);
    await server.hasClients(1);
    await waitFor(() => page.events.some(({ type }) => type === 'opened'));
    for (let round = 0; round < 3; round += 1) {
      const last = await feed.frames(20);
      await waitFor(() => page.texts.at(-1) === String(last));
      server.relay.close();
      await server.web[Symbol.asyncDispose]();
      await feed.frames(50);
      server = await serveFeed(feed.log.read$({ from: 'latest' }), options, {}, port);
      server.relay.hold();
    }
    const last = await feed.frames(5);
    await waitFor(() => page.texts.at(-1) === String(last));
    expect(page.texts.map(Number)).toEqual(range(1, last));
    let state = noFeed;
    for (const event of page.events)
      state = event.type === 'frame' ? afterFrame(state, event.receivedAt, event) : afterEvent(state, event, undefined);
    expect(state.totals).toMatchObject({ gaps: 0, missed: 0 });
  });
});
