import { describe, expect, it } from '@jest/globals';
import { Subject } from 'rxjs';
import { feedLog, type ReadOptions } from '../../src/log/index.js';
import type { RelayOptions } from '../../src/relay/index.js';
import { atEnd, quick, receive, type Receiver, serveFeed } from '../browser/support.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { opened } from '../operators/stream.js';
import { waitFor } from '../support/wait-for.js';
import { frame } from './support.js';

const folder = tempFolder();
let count = 0;

/** A growing log, and its payloads as counted from outside. */
class Growing {
  readonly log = feedLog(folder.path(`log-${(count += 1)}`));
  readonly payloads: string[] = [];
  readonly #source = new Subject<unknown>();

  constructor() {
    const writer = this.#source.pipe(this.log.append({ syncMs: Infinity })).subscribe();
    atEnd(() => writer.unsubscribe());
    this.#source.next(opened(Date.now()));
  }

  add(frames: number): void {
    for (let n = 0; n < frames; n += 1) {
      this.payloads.push(String(this.payloads.length));
      this.#source.next(frame(this.payloads.length - 1, Date.now()));
    }
  }
}

/** Starts a relay over a log, on the previous relay's port. */
const start = ({ log }: Growing, read: ReadOptions = {}, options: RelayOptions = {}, port?: number) =>
  serveFeed(log.read$(read), { lingerMs: Infinity, ...options }, {}, port);
type Served = Awaited<ReturnType<typeof start>>;

const stop = async ({ relay, web }: Served): Promise<number> => {
  const { port } = web;
  relay.close();
  await web[Symbol.asyncDispose]();
  return port;
};

const payloadsOf = ({ frames }: Receiver): string[] => frames.map((each) => each.text());
const has = (page: Receiver, frames: number) => waitFor(() => page.frames.length >= frames);

describe('a page of a relay over a log', () => {
  it('continues across restarts of the relay: no gap, no frame lost, none twice', async () => {
    const growing = new Growing();
    let served = await start(growing);
    served.relay.hold();
    const page = receive(served.web.url, quick);
    await served.hasClients(1);
    growing.add(5);
    await has(page, 5);
    for (let restart = 1; restart <= 3; restart += 1) {
      growing.add(3);
      const port = await stop(served);
      // No relay sends these.
      growing.add(4);
      served = await start(growing, {}, {}, port);
      growing.add(2);
      await has(page, growing.payloads.length);
    }
    expect(payloadsOf(page)).toEqual(growing.payloads);
    expect(page.events.filter(({ type }) => type === 'gap')).toEqual([]);
  });

  it('continues even if the new relay is still reading the past when the page returns', async () => {
    const growing = new Growing();
    growing.add(5_000);
    const first = await start(growing, { from: { offset: 5_001 } });
    const page = receive(first.web.url, quick);
    await first.hasClients(1);
    growing.add(10);
    await has(page, 10);
    const port = await stop(first);
    growing.add(10);
    // It subscribes once the page is there, and reads the log from the beginning.
    await start(growing, { from: 'earliest' }, {}, port);
    await has(page, 20);
    growing.add(1);
    await has(page, 21);
    expect(payloadsOf(page)).toEqual(growing.payloads.slice(-21));
    expect(page.events.filter(({ type }) => type === 'gap')).toEqual([]);
  });

  it('gets a gap with the exact number of frames if the new relay does not read back far enough', async () => {
    const growing = new Growing();
    const first = await start(growing);
    const page = receive(first.web.url, quick);
    await first.hasClients(1);
    growing.add(5);
    await has(page, 5);
    const port = await stop(first);
    growing.add(20);
    const second = await start(growing, { from: { offset: 1 + 5 + 12 } }, {}, port);
    second.relay.hold();
    await has(page, 13);
    expect(payloadsOf(page)).toEqual([...growing.payloads.slice(0, 5), ...growing.payloads.slice(17)]);
    expect(page.events.filter(({ type }) => type === 'gap')).toMatchObject([
      { missed: 12, failure: { code: 'relay-behind' } },
    ]);
  });

  it('gets a gap with the exact number of frames if the new relay stores too few events', async () => {
    const growing = new Growing();
    const first = await start(growing);
    const page = receive(first.web.url, quick);
    await first.hasClients(1);
    growing.add(5);
    await has(page, 5);
    const port = await stop(first);
    growing.add(20);
    const second = await start(growing, {}, { capacity: 8 }, port);
    second.relay.hold();
    await has(page, 5 + 8);
    expect(payloadsOf(page)).toEqual([...growing.payloads.slice(0, 5), ...growing.payloads.slice(17)]);
    expect(page.events.filter(({ type }) => type === 'gap')).toMatchObject([{ missed: 12 }]);
  });

  it('that is new receives as much of the past as it asks for', async () => {
    const growing = new Growing();
    growing.add(30);
    const { relay, web } = await serveFeed(
      growing.log.read$(),
      { lingerMs: Infinity },
      { sinceMs: ({ url }) => Number(new URL(url ?? '', 'http://a').searchParams.get('since')) },
    );
    relay.hold();
    await waitFor(() => relay.status().stored.events === 31);
    const [all, none] = [receive(`${web.url}?since=3600000`, quick), receive(web.url, quick)];
    await waitFor(() => relay.status().clients.length === 2);
    growing.add(2);
    await Promise.all([has(all, 32), has(none, 2)]);
    expect(payloadsOf(all)).toEqual(growing.payloads);
    expect(payloadsOf(none)).toEqual(growing.payloads.slice(-2));
    expect(all.events.filter(({ type }) => type === 'gap')).toEqual([]);
  });

  it('receives events without the place that they have in the log', async () => {
    const growing = new Growing();
    const { web } = await start(growing);
    const page = receive(web.url, quick);
    growing.add(1);
    await has(page, 1);
    for (const event of page.events) expect(Object.keys(event)).not.toContain('offset');
  });
});
