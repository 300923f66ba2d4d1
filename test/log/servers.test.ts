/**
 * @lane brokers
 * @ci
 */
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { defer, lastValueFrom, NEVER, startWith, Subject, take } from 'rxjs';
import type { FeedLog, LogError, LogRecord } from '../../src/log/index.js';
import { startOf } from '../../src/protocol/place.js';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import { startLimitMs, waitFor } from '../support/wait-for.js';
import { type Intruder, type LogClient, logServers } from './log-servers.js';
import { all, append, done, follow, frame, frames, gapsOf, offsetsOf } from './support.js';
import { opened, short, startWriter, texts, textsOf } from './support.js';

const kinds = ['nats', 'redis'] as const;
const limitMs = startLimitMs;

/** A writer that notes its failures and goes on. */
const startNoting = (log: FeedLog) => {
  const noted: LogError[] = [];
  return { noted, ...startWriter(log, { onError: (error: LogError) => void noted.push(error) }) };
};

// A test that fails leaves its spy, which would count the warnings of others.
afterEach(() => void jest.restoreAllMocks());

for (const kind of kinds) {
  const { title, connect, intrude, cursorKey, refusals } = logServers[kind];

  describeInstalled(kind, `a log on ${title}`, () => {
    let server: RealServer;
    let clients: readonly [LogClient, LogClient];
    let intruder: Intruder;
    beforeAll(async () => {
      server = await startServer(kind);
      clients = [await connect(server), await connect(server)];
      intruder = await intrude(server);
    });
    afterAll(() => server.stop());

    /** A new log, opened over two connections. */
    const twice = () => {
      const name = randomUUID();
      return { name, log: clients[0].open(name), other: clients[1].open(name) };
    };

    it('does not subscribe to the source of a second writer', async () => {
      const { log, other } = twice();
      const writer = startWriter(log);
      writer.send(opened(), frame(1));
      await waitFor(async () => textsOf(await all(log).catch(() => [])).length === 1);
      let subscriptions = 0;
      const source = defer(() => {
        subscriptions += 1;
        return NEVER;
      });
      await expect(lastValueFrom(source.pipe(other.append()))).rejects.toMatchObject({ code: 'log-in-use' });
      expect(subscriptions).toBe(0);
      writer.send(frame(2));
      await writer.end();
      expect(textsOf(await all(other))).toEqual(texts(1, 3));
    });

    it('subscribes to the source of one of two writers that begin at once', async () => {
      for (let round = 0; round < 5; round += 1) {
        const { log, other } = twice();
        const stop = new Subject<void>();
        let subscriptions = 0;
        const codes: string[] = [];
        const source = defer(() => {
          subscriptions += 1;
          return NEVER.pipe(startWith(opened(), frame(subscriptions)));
        });
        const running = [log, other].map((each) =>
          source.pipe(each.append()).subscribe({ error: ({ code }: LogError) => codes.push(code) }),
        );
        await waitFor(() => subscriptions + codes.length === 2, { limitMs });
        expect([subscriptions, codes]).toEqual([1, ['log-in-use']]);
        for (const each of running) each.unsubscribe();
        await Promise.all([log.close(), other.close()]);
        expect(textsOf(await all(log))).toEqual(texts(1, 2));
        stop.complete();
      }
    });

    const strays: readonly (readonly [string, Buffer])[] = [
      ['a text', Buffer.from('hello')],
      ['a JSON object', Buffer.from('{"hello":1}\n')],
      ['a header without its fields', Buffer.from('{"type":"segment","v":2,"offset":9e9,"gen":9e9}\n')],
      ['binary data', Buffer.from([0, 255, 10, 1, 10, 128])],
      ['nothing', Buffer.alloc(0)],
    ];
    it.each(strays)('goes on with its offsets after another program has published %s', async (_, bytes) => {
      const { name, log, other } = twice();
      const writer = startNoting(log);
      const reader = follow(other);
      writer.send(opened(), frame(1));
      await waitFor(() => textsOf(reader.records).length === 1, { limitMs });
      await intruder.publish(name, bytes);
      writer.send(frame(2));
      await waitFor(() => textsOf(reader.records).length === 2, { limitMs });
      await intruder.publish(name, bytes);
      await writer.end();
      await append(other, [opened(5_000), frame(3, 5_001)]);
      const expected = ['0:opened', '1:{"n":1}', '2:{"n":2}', '3:opened', '4:gap log-paused', '5:{"n":3}'];
      await waitFor(() => textsOf(reader.records).length === 3, { limitMs });
      reader.stop();
      expect(short(reader.records).filter((each) => !each.startsWith('-'))).toEqual(expected);
      expect(gapsOf(reader.records)).toHaveLength(1);
      expect(short(await all(log))).toEqual(expected);
      expect(short(await all(log, { from: { offset: 2 } })).slice(1)).toEqual(expected.slice(2));
      expect([...writer.noted, ...writer.errors]).toEqual([]);
    });

    it('loses nothing when what another program has published is removed', async () => {
      const { name, log, other } = twice();
      await append(log, [opened(), frame(1)]);
      await intruder.publish(name, Buffer.from('hello'));
      await intruder.removeNewest(name);
      await append(other, [opened(5_000), frame(2, 5_001)]);
      await append(log, [opened(6_000), frame(3, 6_001)]);
      const records = await all(log);
      expect(offsetsOf(records)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect(textsOf(records)).toEqual(texts(1, 4));
    });

    it('asks the server rarely while the market is quiet, also after what another program has published', async () => {
      const { name, log } = twice();
      const client = await connect(server);
      const writer = startWriter(log);
      const reader = follow(client.open(name));
      writer.send(opened(), frame(1));
      await waitFor(() => textsOf(reader.records).length === 1, { limitMs });
      await intruder.publish(name, Buffer.from('hello'));
      const watermarks = () => reader.records.filter(({ type }) => type === 'watermark').length;
      const beats = async (count: number) => {
        const enough = watermarks() + count;
        await waitFor(() => watermarks() >= enough, { limitMs });
      };
      await beats(2);
      const [sent, at] = [client.sent(), performance.now()];
      await beats(8);
      expect((client.sent() - sent) / ((performance.now() - at) / 1_000)).toBeLessThan(20);
      reader.stop();
      await writer.end();
      await client.close();
    });

    it('never begins anew with a consumer whose cursor is removed while it runs', async () => {
      const { name, log } = twice();
      const writer = startWriter(log);
      writer.send(opened(), frame(1));
      const seen: LogRecord[] = [];
      const errors: LogError[] = [];
      const work = (records: readonly LogRecord[]) => Promise.resolve(seen.push(...records));
      log.consume$('db', work).subscribe({ error: (error: LogError) => errors.push(error) });
      await waitFor(async () => (await log.committed('db').catch(() => undefined))?.offset === 2, { limitMs });
      await intruder.removeCursors(name);
      writer.send(frame(2));
      await waitFor(() => errors.length > 0, { limitMs });
      expect(errors[0]).toMatchObject({ name: 'LogError', code: 'consumer-in-use' });
      expect(textsOf(seen)).toEqual(texts(1, 3));
      expect(await log.committed('db')).toBeUndefined();
      await writer.end();
    });

    it('passes a cursor that another process has moved on to nobody, and refuses one that is damaged', async () => {
      const { name, log } = twice();
      const writer = startWriter(log);
      writer.send(opened(), frame(1));
      const errors: LogError[] = [];
      const running = log.consume$('db', done).subscribe({ error: (error: LogError) => errors.push(error) });
      await waitFor(async () => (await log.committed('db').catch(() => undefined))?.offset === 2, { limitMs });
      const { offset, line } = (await log.committed('db'))!;
      await intruder.setCursor(name, 'db', JSON.stringify({ offset, line, owner: 'another process' }));
      writer.send(frame(2));
      await waitFor(() => errors.length > 0, { limitMs });
      expect(errors[0]).toMatchObject({ code: 'consumer-in-use' });
      running.unsubscribe();
      await intruder.setCursor(name, 'db', 'no JSON');
      const damaged = { code: 'log-corrupt', path: cursorKey(name, 'db') };
      await expect(log.committed('db')).rejects.toMatchObject(damaged);
      await expect(lastValueFrom(log.consume$('db', done))).rejects.toMatchObject(damaged);
      await writer.end();
    });

    it('is not there before its first writer: a reader that follows waits, another one fails', async () => {
      const { log, other } = twice();
      const reader = follow(other);
      await expect(all(log)).rejects.toMatchObject({
        ...{ code: 'log-missing', message: expect.stringContaining('Check the name and the server.') },
      });
      await append(log, [opened(), frame(1)]);
      await waitFor(() => textsOf(reader.records).length === 1, { limitMs });
      reader.stop();
    });

    it('loses nothing of a writer whose subscriber leaves if its connection closes after the log', async () => {
      for (let round = 0; round < 5; round += 1) {
        const { name, other } = twice();
        const client = await connect(server);
        const log = client.open(name);
        const source = new Subject<unknown>();
        const subscription = source.pipe(log.append()).subscribe();
        await waitFor(() => source.observed, { limitMs });
        for (const event of [opened(), ...frames(1, 101)]) source.next(event);
        if (round % 2 === 0) subscription.unsubscribe();
        await log.close();
        await client.close();
        expect(textsOf(await all(other))).toEqual(texts(1, 101));
      }
    });

    it('is free at once when its connection closes after its subscriber has left, and says that it may lack records', async () => {
      const { name, other } = twice();
      const client = await connect(server);
      const source = new Subject<unknown>();
      const subscription = source.pipe(client.open(name).append()).subscribe();
      await waitFor(() => source.observed, { limitMs });
      for (const event of [opened(), ...frames(1, 101)]) source.next(event);
      const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue();
      subscription.unsubscribe();
      const at = performance.now();
      await client.close();
      await append(other, [opened(2_000)]);
      expect(performance.now() - at).toBeLessThan(1_500);
      const warnings = emitWarning.mock.calls.map(([text]) => text);
      emitWarning.mockRestore();
      // Redis has answered before it closes.
      const unconfirmed = /closed before the last records were confirmed\. Await `log\.close\(\)` before/;
      expect(warnings).toEqual(kind === 'redis' ? [] : [expect.stringMatching(unconfirmed)]);
      expect(textsOf(await all(other))).toEqual(texts(1, 101));
    });

    it.each<[string, object, string]>([
      ['a name with a dot', { name: 'a.b' }, 'name'],
      ['no name', {}, 'name'],
      ['half a byte', { name: 'a', maxBytes: 1.5 }, 'maxBytes'],
      ['more bytes than a server can count', { name: 'a', maxBytes: 2 ** 70 }, 'maxBytes'],
      ['a short age', { name: 'a', maxAgeMs: 99 }, 'maxAgeMs'],
      ['an age of 31,000 years', { name: 'a', maxAgeMs: 1e15 }, 'maxAgeMs'],
      ['no room', { name: 'a', maxWaitingBytes: 0 }, 'maxWaitingBytes'],
      ['an option of a folder', { name: 'a', syncMs: 1 }, 'syncMs'],
    ])('refuses %s', (_, options, option) => {
      const { name, ...more } = options as { readonly name: string };
      expect(() => clients[0].open(name, more)).toThrow(expect.objectContaining({ code: 'invalid-options', option }));
    });
  });

  describeInstalled(kind, `a log on ${title} whose server fails`, () => {
    /** A server, a log over two connections, a reader that follows, and a writer that has written ten frames. */
    const setUp = async (options = {}) => {
      const server = await startServer(kind);
      const clients = [await connect(server), await connect(server)] as const;
      const log = clients[0].open('market', options);
      const other = clients[1].open('market');
      const reader = follow(other);
      server.defer(() => reader.stop());
      const writer = startNoting(log);
      writer.send(opened(), ...frames(1, 11));
      await waitFor(() => textsOf(reader.records).length === 10, { limitMs });
      return { server, clients, log, other, reader, writer, [Symbol.asyncDispose]: server.stop };
    };
    const freeze = ({ broker }: RealServer) => {
      process.kill(broker.pid!, 'SIGSTOP');
      return { [Symbol.dispose]: () => process.kill(broker.pid!, 'SIGCONT') };
    };

    it('loses nothing and repeats nothing when the server is killed and restarted again and again', async () => {
      await using test = await setUp();
      const { server, reader, log, other, writer } = test;
      const consumed: LogRecord[] = [];
      const consuming = other.consume$('db', (records) => Promise.resolve(consumed.push(...records))).subscribe();
      let sent = 10;
      const send = () => writer.send(...frames(sent + 1, (sent += 10) + 1));
      for (let round = 0; round < 4; round += 1) {
        send();
        await server.broker.kill();
        send();
        await server.broker.start();
        send();
        await waitFor(() => textsOf(reader.records).length === sent, { limitMs });
      }
      await writer.end();
      expect([...writer.errors, ...writer.noted]).toEqual([]);
      expect(textsOf(reader.records)).toEqual(texts(1, sent + 1));
      expect(short(await all(log))).toEqual(['0:opened', ...texts(1, sent + 1).map((text, n) => `${n + 1}:${text}`)]);
      await waitFor(() => textsOf(consumed).length >= sent, { limitMs });
      expect(new Set(textsOf(consumed)).size).toBe(sent);
      consuming.unsubscribe();
      await append(log, [opened(9_000), frame(1, 9_001)]);
      expect(short(await all(log)).slice(-3)).toEqual([
        ...[`${sent + 1}:opened`, `${sent + 2}:gap log-paused`, `${sent + 3}:{"n":1}`],
      ]);
      await waitFor(() => short(reader.records).includes(`${sent + 3}:{"n":1}`), { limitMs });
    });

    it('counts the frames and the gaps of the feed that find no room while the server is away', async () => {
      await using test = await setUp({ maxWaitingBytes: 10_000 });
      const { server, reader, log, writer } = test;
      await server.broker.kill();
      writer.send(...frames(11, 1_011));
      await waitFor(() => writer.noted.length > 0, { limitMs });
      expect(writer.noted[0]).toMatchObject({ code: 'log-write-failed' });
      expect(writer.noted[0]!.message).toContain('more than 10000 bytes wait');
      await server.broker.start();
      await waitFor(() => gapsOf(reader.records).length > 0, { limitMs });
      const { missed = 0 } = gapsOf(reader.records)[0]!;
      expect(missed).toBeGreaterThan(500);
      writer.send(...frames(1_011, 1_016));
      await writer.end();
      const stored = [...texts(1, 1_011 - missed), ...texts(1_011, 1_016)];
      expect(textsOf(await all(log))).toEqual(stored);
      await waitFor(() => textsOf(reader.records).length === stored.length, { limitMs });
      expect(offsetsOf(await all(log))).toEqual([...Array(stored.length + 3).keys()]);
    });

    it('sends again what it still holds to a server that has lost its data, and readers repeat nothing', async () => {
      await using test = await setUp();
      const { server, reader, log, other, writer } = test;
      await lastValueFrom(other.consume$('db', done).pipe(take(1)));
      await server.broker.kill();
      server.broker.wipe();
      await server.broker.start();
      writer.send(frame(11));
      await waitFor(() => textsOf(reader.records).length === 11, { limitMs });
      await writer.end();
      expect(textsOf(reader.records)).toEqual(texts(1, 12));
      expect(gapsOf(reader.records)).toEqual([]);
      expect(textsOf(await all(log))).toEqual(texts(1, 12));
    });

    it('says how many frames are gone after a server has lost its data and the writer too', async () => {
      await using test = await setUp();
      const { server, reader, log, writer } = test;
      await writer.end();
      const { position } = reader.records.find((record) => record.type === 'frame')!;
      await server.broker.kill();
      server.broker.wipe();
      await server.broker.start();
      const next = startNoting(log);
      next.send(opened(5_000), ...frames(100, 103));
      await waitFor(() => textsOf(reader.records).length === 13, { limitMs });
      await next.end();
      expect(gapsOf(reader.records).map(({ failure }) => failure.code)).toEqual(['log-behind']);
      expect(short(await all(log, { from: position }))[0]).toBe('-:gap log-behind');
      expect(textsOf(await all(log))).toEqual(texts(100, 103));
    });

    it.each(Object.entries(refusals))(
      'reports a server that %s at once, once, and stores everything once it takes it',
      async (_, [refuse, message]) => {
        await using test = await setUp();
        const { server, reader, writer, other, clients } = test;
        await append(clients[0].open('next'), [opened(), frame(1)]);
        const failure = { name: 'LogError', code: 'log-write-failed', message: expect.stringMatching(message) };
        for (let round = 1; round <= 2; round += 1) {
          const from = round * 10 + 1;
          const takes = [await refuse(server, 'market'), await refuse(server, 'next')];
          const at = performance.now();
          writer.send(...frames(from, from + 10));
          const next = startNoting(clients[1].open('next'));
          next.send(opened(5_000), frame(2, 5_001));
          await waitFor(() => writer.noted.length >= round && next.noted.length > 0, { limitMs });
          expect(performance.now() - at).toBeLessThan(4_000);
          expect([writer.noted.at(-1), ...next.noted]).toEqual(Array(2).fill(expect.objectContaining(failure)));
          for (const take of takes) await take();
          await waitFor(() => textsOf(reader.records).length === from + 9, { limitMs });
          await next.end();
          expect([...next.errors, ...next.noted]).toHaveLength(1);
        }
        await writer.end();
        expect(writer.errors).toEqual([]);
        expect(writer.noted).toHaveLength(2);
        expect(textsOf(reader.records)).toEqual(texts(1, 31));
        expect(textsOf(await all(other))).toEqual(texts(1, 31));
        expect(textsOf(await all(clients[0].open('next')))).toEqual(textsOf([1, 2, 2].map((n) => frame(n))));
      },
    );

    it('ends a writer without a function with what the server refuses', async () => {
      for (const [refuse, message] of Object.values(refusals)) {
        await using test = await setUp();
        const strict = startWriter(test.clients[0].open('strict'));
        strict.send(opened(), frame(1));
        await waitFor(async () => textsOf(await all(test.other).catch(() => [])).length > 0, { limitMs });
        await waitFor(async () => textsOf(await all(test.clients[1].open('strict')).catch(() => [])).length > 0);
        const take = await refuse(test.server, 'strict');
        strict.send(frame(2));
        await waitFor(() => strict.errors.length > 0, { limitMs });
        expect(strict.errors).toEqual([expect.objectContaining({ message: expect.stringMatching(message) })]);
        await take();
      }
    });

    it('reports a server that hangs after five seconds, once, and stores everything once it goes on', async () => {
      await using test = await setUp();
      const { server, reader, writer, other } = test;
      {
        using _ = freeze(server);
        const at = performance.now();
        writer.send(...frames(11, 21));
        await waitFor(() => writer.noted.length > 0, { limitMs });
        expect(performance.now() - at).toBeGreaterThan(4_900);
        await expect(all(other)).rejects.toMatchObject({ name: 'LogError', code: 'log-corrupt' });
      }
      await waitFor(() => textsOf(reader.records).length === 20, { limitMs });
      await writer.end();
      expect(writer.noted.map(({ code }) => code)).toEqual(['log-write-failed']);
      expect(writer.errors).toEqual([]);
      expect(textsOf(await all(other))).toEqual(texts(1, 21));
      expect(textsOf(reader.records)).toEqual(texts(1, 21));
    });

    it('waits for a server that is away at the start, and says so after five seconds', async () => {
      await using server = await startServer(kind);
      const client = await connect(server);
      const log = client.open('market');
      await append(log, [opened(), frame(1)]);
      await server.broker.kill();
      let subscriptions = 0;
      const source = new Subject<unknown>();
      const noted: LogError[] = [];
      const counted = defer(() => {
        subscriptions += 1;
        return source;
      });
      const at = performance.now();
      const writing = counted.pipe(log.append({ onError: (error) => void noted.push(error) })).subscribe();
      await waitFor(() => noted.length > 0, { limitMs });
      expect(performance.now() - at).toBeGreaterThan(4_900);
      expect(noted[0]).toMatchObject({ name: 'LogError', code: 'log-write-failed' });
      expect(subscriptions).toBe(0);
      await server.broker.start();
      await waitFor(() => source.observed, { limitMs });
      source.next(opened(5_000));
      source.next(frame(2, 5_001));
      writing.unsubscribe();
      await log.close();
      expect(textsOf(await all(log))).toEqual(texts(1, 3));
      expect(noted).toHaveLength(1);
    });

    it('ends readers and consumers that do not follow with an error after five seconds', async () => {
      await using test = await setUp();
      const { server, other, writer } = test;
      await writer.end();
      await server.broker.kill();
      const at = performance.now();
      const failures = await Promise.all([
        all(other).catch((error: unknown) => error),
        other.committed('db').catch((error: unknown) => error),
      ]);
      expect(performance.now() - at).toBeGreaterThan(4_900);
      for (const failure of failures) expect(failure).toMatchObject({ name: 'LogError', code: 'log-corrupt' });
      await server.broker.start();
    });

    it('reports the end of a writer in an outage: to its function, or as a process warning', async () => {
      await using test = await setUp();
      const { server, log, clients } = test;
      const more = clients[1].open('more');
      const [one, two] = [new Subject<unknown>(), new Subject<unknown>()];
      const noted: LogError[] = [];
      const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue();
      await test.writer.end();
      const writing = [
        one.pipe(log.append({ onError: (error) => void noted.push(error) })).subscribe(),
        two.pipe(more.append()).subscribe(),
      ];
      await waitFor(() => one.observed && two.observed, { limitMs });
      await server.broker.kill();
      for (const source of [one, two]) for (const event of [opened(9_000), frame(9, 9_001)]) source.next(event);
      for (const each of writing) each.unsubscribe();
      await Promise.all([log.close(), more.close()]);
      const warnings = emitWarning.mock.calls;
      emitWarning.mockRestore();
      // The outage itself may be another one.
      expect(new Set(noted.map(({ code }) => code))).toEqual(new Set(['log-write-failed']));
      const warning = { type: 'TradeFeedWarning', code: 'log-write-failed' };
      expect(warnings).toEqual([[expect.stringContaining(`Can't write the log`), warning]]);
      await server.broker.start();
    });

    it('keeps at most what may wait of the events of a feed without frames', async () => {
      await using test = await setUp({ maxWaitingBytes: 10_000 });
      const { server, reader, log, writer } = test;
      await server.broker.kill();
      for (let n = 1; n <= 500; n += 1) writer.send(opened(2_000 + n));
      await waitFor(() => writer.noted.length > 0, { limitMs });
      expect(writer.noted[0]!.message).toContain('more than 10000 bytes wait');
      await server.broker.start();
      await waitFor(() => short(reader.records).some((each) => each.includes('gap log-write-failed')), { limitMs });
      await writer.end();
      expect((await all(log)).length).toBeLessThan(300);
    });

    it('ends readers and writers with an error of the log when the connection is closed', async () => {
      await using test = await setUp();
      const { clients, reader, writer, log, other } = test;
      await clients[0].close();
      writer.send(frame(11));
      await waitFor(() => writer.errors.length > 0, { limitMs });
      expect(writer.errors[0]).toMatchObject({ code: 'log-write-failed' });
      await clients[1].close();
      await waitFor(() => reader.errors.length > 0, { limitMs });
      expect(reader.errors[0]).toMatchObject({ code: 'log-corrupt' });
      const failures = await Promise.all(
        [
          append(log, []),
          // A connection that was closed doesn't come back, so there's nothing to go on with.
          append(log, [], { onError: () => undefined }),
          all(log),
          all(other, { from: startOf('line') }),
          lastValueFrom(log.consume$('db', done)),
          log.committed('db'),
        ].map((each) => each.then(() => undefined).catch((error: unknown) => error)),
      );
      for (const failure of failures) expect(failure).toMatchObject({ name: 'LogError' });
    });
  });
}
