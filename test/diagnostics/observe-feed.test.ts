import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { lastValueFrom, type Observable } from 'rxjs';
import {
  type AttemptMessage,
  type Feed,
  type FeedEventMessage,
  TradeFeedError,
  tradeFeed$,
  tradeFeedEvents$,
  type TradeFeedOptions,
} from '../../src/index.js';
import { tablesUnder } from '../docs/tables.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { accept, close, refuse, startWire, text } from '../support/wire.js';
import { waitFor } from '../support/wait-for.js';

const lifecycle = ['opened', 'disconnected', 'gap', 'owner', 'stopped'].map((name) => `rx-trade-feed:${name}`);
const tracing = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'].map(
  (name) => `tracing:rx-trade-feed:attempt:${name}`,
);

type Message = AttemptMessage | FeedEventMessage;
let messages: (readonly [name: string, message: Message])[] = [];
const listener = (message: unknown, name: string | symbol) => void messages.push([String(name), message as Message]);

beforeEach(() => {
  messages = [];
  for (const name of [...lifecycle, ...tracing]) subscribe(name, listener);
});
afterEach(() => {
  for (const name of [...lifecycle, ...tracing]) unsubscribe(name, listener);
});

const named = (name: string): readonly Message[] => messages.filter(([each]) => each === name).map(([, each]) => each);
const names = (): readonly string[] => messages.map(([name]) => name.replace(/^(tracing:)?rx-trade-feed:/, ''));

// Two connections with an outage between them, then a stop.
const script = {
  handshake: [accept(text('one'), close(1001)), accept(text('two'), close(4001, 'connection replaced'))],
};
const begun = ['attempt:start', 'attempt:end'];
const ended = ['attempt:error', 'attempt:asyncStart', 'attempt:asyncEnd'];
const expected = [
  ...[...begun, 'opened', ...ended, 'disconnected'],
  ...[...begun, 'opened', 'gap', ...ended, 'stopped'],
];

describe.each<[string, (feed: Feed, options: TradeFeedOptions) => Observable<unknown>, TradeFeedOptions]>([
  ['tradeFeed$ on the main thread', tradeFeed$, {}],
  ['tradeFeedEvents$ on the main thread', tradeFeedEvents$, {}],
  ['tradeFeed$ in a worker', tradeFeed$, { receiveIn: 'worker' }],
  ['tradeFeedEvents$ in a worker', tradeFeedEvents$, { receiveIn: 'worker' }],
])('%s', (_name, feed$, options) => {
  it('publishes its attempts, openings, failures, gaps and its stop, with one origin and no secret', async () => {
    await using wire = await startWire(script);
    const failure: unknown = await lastValueFrom(feed$('market', optionsFor(wire, options))).catch(
      (error: unknown) => error,
    );
    expect(names()).toEqual(expected);

    const [, first] = messages[0] as (typeof messages)[0];
    expect(first.origin).toEqual({
      feed: 'market',
      baseUrl: wire.baseUrl,
      where: expect.stringMatching(/^tradeFeed(Events)?\$\('market'\) at .*observe-feed\.test\.ts:\d+:\d+$/),
    });
    expect(new Set(messages.map(([, { origin }]) => origin))).toEqual(new Set([first.origin]));
    expect(new Set(messages.map(([, { origin }]) => origin)).size).toBe(1);
    expect((named('rx-trade-feed:stopped')[0] as FeedEventMessage).event).toMatchObject({ type: 'stopped', failure });
    expect(named('rx-trade-feed:gap')[0]).toMatchObject({
      event: { type: 'gap', failure: { code: 'server-shutdown' } },
    });
    expect(named('tracing:rx-trade-feed:attempt:asyncEnd')).toMatchObject([
      { attempt: 1, stage: 'stream', error: { code: 'server-shutdown' } },
      { attempt: 2, stage: 'stream', error: { code: 'connection-replaced' } },
    ]);
    const all = JSON.stringify(messages);
    expect(all).not.toContain(plantedKey);
    expect(all).not.toContain('planted-ticket');
  });

  it('ends the attempt when it is unsubscribed from', async () => {
    await using wire = await startWire();
    const subscription = feed$('market', optionsFor(wire, options)).subscribe();
    await waitFor(() => named('rx-trade-feed:opened').length > 0);
    subscription.unsubscribe();
    expect(names()).toEqual([...begun, 'opened', 'attempt:asyncStart', 'attempt:asyncEnd']);
  });

  it('publishes a stop for an exception of the application, with the exception as the cause', async () => {
    await using wire = await startWire({ ticket: [refuse(500)] });
    const thrown = new Error('of the application');
    const classify = () => {
      throw thrown;
    };
    await expect(lastValueFrom(feed$('market', optionsFor(wire, { ...options, classify })))).rejects.toBe(thrown);
    const [message] = named('rx-trade-feed:stopped') as FeedEventMessage[];
    expect(message?.event).toMatchObject({ failure: { code: 'relay-source-failed', cause: thrown } });
    expect(names()).toEqual([...begun, ...ended, 'stopped']);
  });

  it('begins with attempt 1 and another origin in a new subscription', async () => {
    await using wire = await startWire({ handshake: [accept(close(4001, 'connection replaced'))] });
    const stopped$ = feed$('market', optionsFor(wire, options));
    for (let run = 0; run < 2; run += 1) await expect(lastValueFrom(stopped$)).rejects.toBeInstanceOf(TradeFeedError);
    const starts = named('tracing:rx-trade-feed:attempt:start') as AttemptMessage[];
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 1]);
    expect(starts[0]?.origin).not.toBe(starts[1]?.origin);
    expect(names()).not.toContain('gap');
  });
});

describe('the guide', () => {
  const fieldsIn = (heading: string): readonly string[] => {
    const [rows = []] = tablesUnder('docs/operating.md', heading);
    return rows.map((row) => row['field'] as string).sort();
  };

  it('names the channels and all fields of their messages', async () => {
    await using wire = await startWire(script);
    await lastValueFrom(tradeFeed$('market', optionsFor(wire))).catch(() => undefined);
    const [rows = []] = tablesUnder('docs/operating.md', 'Channels');
    expect(rows.map((row) => row['channel'])).toEqual(['tracing:rx-trade-feed:attempt:*', ...lifecycle]);
    const [attempt] = named('tracing:rx-trade-feed:attempt:asyncEnd') as AttemptMessage[];
    const fieldsOf = (value: object | undefined): readonly string[] => Object.keys(value ?? {}).sort();
    expect(fieldsIn('The message of an attempt')).toEqual(fieldsOf(attempt));
    expect(fieldsIn('The message of an event')).toEqual(fieldsOf(named('rx-trade-feed:gap')[0]));
    expect(fieldsIn('The origin of a message')).toEqual(fieldsOf(attempt?.origin));
  });
});
