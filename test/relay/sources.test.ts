import { afterEach, describe, expect, it } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { tempFolder } from '../cli/support/temp-folder.js';
import { frameLine, gapLine } from '../../src/operators/node/recording/recording-line.js';
import { Frame, frames, replay$, tradeFeed$, tradeFeedEvents$ } from '../../src/index.js';
import { createRelay, type Relay, relayHandler, type RelayOptions } from '../../src/relay/index.js';
import { startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { Receiver } from '../browser/support.js';
import { gapOf } from '../operators/stream.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { accept, close, issue, refuse, refuseHandshake, startWire, text } from '../support/wire.js';
import { essence, frame, range, Raw, Web } from './support.js';
import { waitFor } from '../support/wait-for.js';

const folder = tempFolder();
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const serve = async (
  source: Parameters<typeof createRelay>[0],
  options?: RelayOptions,
): Promise<{ relay: Relay; web: Web }> => {
  const relay = createRelay(source, { batchMs: 0, lingerMs: 0, ...options });
  const web = await Web.start(relayHandler(relay, { authorize: () => true }));
  closing.push(
    () => relay.close(),
    () => web[Symbol.asyncDispose](),
  );
  return { relay, web };
};

const receive = (url: string): Receiver => {
  // The receiver stops at the first stop of the feed.
  const receiver = new Receiver(url, { maxFeedStops: 1 });
  closing.push(() => receiver.subscription.unsubscribe());
  return receiver;
};

const startService = async (): Promise<{
  service: TradeFeedService;
  options: ReturnType<typeof optionsFor>;
}> => {
  const service = await startTradeFeedService({ limits: { ticketsPerWindow: 1_000 } });
  closing.push(() => service.shutdown());
  const key = service.createAccount({ plan: 'developer' }).createApiKey();
  return { service, options: optionsFor(service, { apiKey: key }) };
};

describe('a relay of `tradeFeedEvents$`', () => {
  it('sends frames, reconnects, gaps and the stop to many clients over one connection', async () => {
    const { service, options } = await startService();
    const { web } = await serve(tradeFeedEvents$('market', options), { lingerMs: 60_000 });
    const clients = [receive(web.url), receive(web.url), receive(web.url)];
    for (const client of clients) await client.until(({ types }) => types.includes('opened'));
    const sent = range(0, 255).map((byte) => Buffer.of(byte, 0xff));
    for (const data of sent) service.push('market', data);
    for (const client of clients) {
      await client.until((each) => each.frames.length === sent.length);
      expect(client.frames.map(({ data }) => Buffer.from(data))).toEqual(sent);
      expect(client.frames.every(({ isBinary, feed }) => isBinary && feed === 'market')).toBe(true);
    }
    const usurper = tradeFeed$('market', options).subscribe();
    closing.push(() => usurper.unsubscribe());
    for (const client of clients) {
      await client.over();
      expect(client.error).toMatchObject({ code: 'connection-replaced', verdict: 'stop', closeCode: 4001 });
    }
    const late = await receive(web.url).over();
    expect(late.error).toMatchObject({ code: 'connection-replaced' });
    // The relay has not taken the connection back.
    expect(usurper.closed).toBe(false);
  });

  it('sends an outage with its gap', async () => {
    const service = await startTradeFeedService({ limits: { ticketsPerWindow: 1_000 } });
    closing.push(() => service.shutdown());
    const account = service.createAccount({ plan: 'developer' });
    const { web } = await serve(tradeFeedEvents$('market', optionsFor(service, { apiKey: account.createApiKey() })));
    const client = receive(web.url);
    await client.until(({ types }) => types.includes('opened'));
    account.expireAccess();
    await client.until(({ types }) => types.includes('gap'));
    const tail = client.types.slice(client.types.indexOf('access-expired'));
    expect(tail).toEqual(['access-expired', 'reconnecting', 'ticket-requested', 'ticket-issued', 'opened', 'gap']);
    expect(client.lifecycle.at(-1)).toMatchObject({ failure: { code: 'access-expired' } });
    expect(client.lifecycle.at(-1)).not.toHaveProperty('missed');
  });

  it('never sends any part of the key or of a ticket', async () => {
    const wire = await startWire({
      ticket: [issue(), refuse(429, { 'retry-after': '0' }, `{"key":"${plantedKey}"}`), issue()],
      handshake: [
        accept(text('one'), close(4003, 'access expired')),
        refuseHandshake(503, {}, 'planted-ticket-3'),
        accept(text('two'), close(4001, 'connection replaced')),
      ],
    });
    closing.push(() => wire[Symbol.asyncDispose]());
    const { relay, web } = await serve(tradeFeedEvents$('market', optionsFor(wire)));
    const log: string[] = [];
    relay.events$.subscribe((event) => log.push(inspect(event, { depth: 9 })));
    const raw = await Raw.get(web.port);
    await raw.until((all) => all.includes('event: connect-again'));
    for (const text of [
      '"data":"one"',
      '"data":"two"',
      'access-expired',
      'ticket-rate-limited',
      'capacity-full',
      'connection-replaced',
    ])
      expect(raw.text).toContain(text);
    expect(wire.handshakes.length).toBe(3);
    for (const seen of [raw.text, log.join(), inspect(relay, { depth: 9, showHidden: true })]) {
      expect(seen).not.toMatch(/planted-/);
      expect(seen).not.toMatch(/bearer|x-api-key|authorization/i);
      expect(seen).not.toContain(wire.wssUrl);
    }
    // A client that joins after the stop.
    const late = await receive(web.url).over();
    expect(inspect(late.error, { depth: 9, showHidden: true })).not.toMatch(/planted-/);
  });
});

describe('a relay of frames alone', () => {
  it('sends frames to clients, and `opened` first to clients that join later', async () => {
    const { service, options } = await startService();
    const { web } = await serve(tradeFeed$('market', options));
    const client = receive(web.url);
    await waitFor(() => web.requests.length === 1);
    const pushing = setInterval(() => service.push('market', '{"n":1}'), 5);
    closing.push(() => clearInterval(pushing));
    await client.until((each) => each.frames.length > 2);
    const late = receive(web.url);
    await late.until((each) => each.frames.length > 0);
    expect([client.types, late.types]).toEqual([[], ['opened']]);
  });
});

describe('a relay of `replay$`', () => {
  it('sends a recording, with its gaps and its end', async () => {
    const path = folder.path('recording');
    const recorded = [
      frame('a', 1_000),
      gapOf(1_010, 1_020),
      new Frame('raw', Buffer.of(0xff, 0), true, 1_030, 2),
      frame('', 1_040, 2),
    ];
    writeFileSync(path, recorded.map((event) => (event.type === 'gap' ? gapLine(event) : frameLine(event))).join(''));
    const { web } = await serve(replay$(path, { speed: Infinity }));
    const client = await receive(web.url).over();
    expect(client.isComplete).toBe(true);
    expect(client.events.map(({ type }) => type)).toEqual(['frame', 'gap', 'frame', 'frame']);
    expect(client.frames.map(essence)).toEqual(
      recorded.flatMap((event) => (event.type === 'frame' ? [essence(event)] : [])),
    );
    expect(client.events[1]).toMatchObject({ from: 1_010, to: 1_020, failure: { code: 'connection-lost' } });
  });
});

describe('a relay of part of a feed', () => {
  it('sends the events of that part', async () => {
    const { service, options } = await startService();
    const { web } = await serve(tradeFeedEvents$('market', options).pipe(frames()));
    const client = receive(web.url);
    await waitFor(() => web.requests.length === 1);
    const pushing = setInterval(() => service.push('market', 'x'), 5);
    closing.push(() => clearInterval(pushing));
    await client.until((each) => each.frames.length > 2);
  });
});
