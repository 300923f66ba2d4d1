import { afterEach, describe, expect, it } from '@jest/globals';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import type { Subscription } from 'rxjs';
import { feedLog, inspectLog, verifyLog } from '../../src/log/index.js';
import { waitFor } from '../support/wait-for.js';
import { compress, done, frames, opened, path, segments, write } from './support.js';

/** What this process has open: files, watched folders, and the timers of the event loop. */
const held = (): Readonly<Record<string, number>> => {
  const files = readdirSync('/proc/self/fd').map((fd) => [readlink(`/proc/self/fd/${fd}`), fd] as const);
  const counts: Record<string, number> = {
    files: files.filter(([file]) => file.startsWith(path())).length,
    watched: files.filter(([file]) => file.includes('inotify')).flatMap(([, fd]) => watchedBy(fd)).length,
  };
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
};
/** The descriptor that lists the others is closed already. */
const readlink = (link: string): string => {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
};
const watchedBy = (fd: string): readonly string[] =>
  readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('inotify'));
const drain = async (iterable: AsyncIterable<unknown>): Promise<void> => {
  for await (const _each of iterable);
};
const damage = (segment: string): void => {
  const bytes = readFileSync(segment);
  bytes.fill(0, bytes.length - 40, bytes.length - 2);
  writeFileSync(segment, bytes);
};
const stored = async (): Promise<ReturnType<typeof feedLog>> => {
  await write([opened(), ...frames(0, 100)], { segmentBytes: 4_000 });
  compress(segments()[1]!);
  return feedLog(path());
};
const times = 20;

describe('leaves no file, no watcher and no timer open:', () => {
  let subscriptions: Subscription[] = [];
  afterEach(() => {
    for (const each of subscriptions) each.unsubscribe();
    subscriptions = [];
  });

  const ends: Readonly<Record<string, (log: ReturnType<typeof feedLog>) => unknown>> = {
    'a loop that reads to the end': (log) => drain(log.read({ follow: false })),
    'a loop at a speed, to the end': (log) => drain(log.read({ follow: false, speed: 1e9 })),
    'a loop over a damaged log, with an error': async (log) => {
      damage(segments()[0]!);
      await expect(drain(log.read({ onDamage: 'error' }))).rejects.toMatchObject({ code: 'log-corrupt' });
    },
    'a loop over a damaged compressed file': async (log) => {
      damage(segments()[1]!);
      await drain(log.read({ follow: false }));
      await expect(drain(log.read({ onDamage: 'error' }))).rejects.toMatchObject({ code: 'log-corrupt' });
    },
    'a loop over a folder that is missing': () =>
      expect(drain(feedLog(path('missing')).read({ follow: false }))).rejects.toThrow(),
    'a loop over a file of another format': () => {
      writeFileSync(path('text'), 'text\n');
      return expect(drain(feedLog(path('text')).read())).rejects.toMatchObject({ code: 'log-corrupt' });
    },
    'a loop that breaks': async (log) => {
      for await (const _records of log.read()) break;
    },
    'a loop that throws': (log) =>
      expect(
        (async () => {
          for await (const _records of log.read()) throw new Error('mine');
        })(),
      ).rejects.toThrow('mine'),
    'an iterator that nobody uses': (log) => log.read()[Symbol.asyncIterator](),
    'an iterator that ends before its first value': async (log) => {
      const iterator = log.read()[Symbol.asyncIterator]();
      await iterator.return?.();
      expect(await iterator.next()).toEqual({ done: true, value: undefined });
    },
    'an iterator that ends while it waits': async (log) => {
      const iterator = log.read({ from: { offset: 1_000, line: 'x' } })[Symbol.asyncIterator]();
      for (let result; (result = await Promise.race([iterator.next(), turn()])) !== undefined;)
        if (result.done === true) return;
      await iterator.return?.();
    },
    'a subscription that ends at once': (log) => log.read$().subscribe().unsubscribe(),
    'a subscription that ends while it reads': async (log) => {
      const subscription = log.read$().subscribe();
      await turn();
      subscription.unsubscribe();
    },
    'a consumer that leaves': async (log) => {
      const subscription = log.consume$('db', done).subscribe();
      subscriptions.push(subscription);
      await turn();
      subscription.unsubscribe();
    },
    'a consumer whose work fails': (log) =>
      new Promise<void>((resolve) => {
        log.consume$('db', () => Promise.reject(new Error('work'))).subscribe({ error: () => resolve() });
      }),
    'a consumer whose cursor is damaged': (log) => {
      mkdirSync(path('market/cursors'), { recursive: true });
      writeFileSync(path('market/cursors/db.json'), 'x');
      return new Promise<void>((resolve) => {
        log.consume$('db', done).subscribe({ error: () => resolve() });
      });
    },
    'the status of a damaged log': async () => {
      for (const segment of segments()) damage(segment);
      await inspectLog(path()).catch(() => undefined);
      await verifyLog(path()).catch(() => undefined);
    },
  };
  it.each(Object.keys(ends))('%s', async (name) => {
    const log = await stored();
    await turn();
    const before = held();
    for (let n = 0; n < times; n += 1) await ends[name]!(log);
    // A read that is on its way closes its file when it is back.
    const more = () => Object.entries(held()).filter(([kind, count]) => count > (before[kind] ?? 0));
    await waitFor(() => more().length === 0, { what: () => JSON.stringify(more()) });
  });
});
