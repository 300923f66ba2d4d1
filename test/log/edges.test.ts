import { expect, it, jest } from '@jest/globals';
import { lastValueFrom, of } from 'rxjs';
import { atExit } from '../../src/log/at-exit.js';
import { Bell, ringerOf } from '../../src/log/bell.js';
import { Durable } from '../../src/log/durable.js';
import { closes, onceClosed, whenClosed } from '../../src/log/lock.js';
import type { Disk } from '../../src/log/segments.js';
import { path } from './support.js';

it('writers share one listener of the end of the process', () => {
  const before = process.listenerCount('exit');
  const removals = [atExit(() => undefined), atExit(() => undefined)];
  expect(process.listenerCount('exit')).toBe(before + 1);
  for (const remove of [...removals, ...removals]) remove();
  expect(process.listenerCount('exit')).toBe(before);
});

it('a ring before a reader waits is not lost', async () => {
  const bell = new Bell(path(), () => () => undefined, false);
  bell.listen();
  ringerOf(path())();
  await bell.heard();
  bell.close();
});

it('who waits for a path waits for all that still close there', async () => {
  const ends: (() => void)[] = [];
  const closing = () => closes('path', new Promise<void>((resolve) => ends.push(resolve)));
  closing();
  const first = lastValueFrom(onceClosed('path', () => of('first')));
  closing();
  ends[0]!();
  await first;
  let isFree = false;
  const second = lastValueFrom(onceClosed('path', () => of((isFree = true))));
  expect(isFree).toBe(false);
  ends[1]!();
  expect(await second).toBe(true);
});

it('who waits for a log on a server does not wait for one of the same name over another connection', async () => {
  const [one, other] = [{}, {}];
  const ends: (() => void)[] = [];
  closes('market', new Promise<void>((resolve) => ends.push(resolve)), one);
  expect(await lastValueFrom(onceClosed('market', () => of('other'), other))).toBe('other');
  await Promise.all([whenClosed('market', other), whenClosed('market')]);
  let isFree = false;
  const free = lastValueFrom(onceClosed('market', () => of((isFree = true)), one));
  expect(isFree).toBe(false);
  ends[0]!();
  await Promise.all([free, whenClosed('market', one)]);
});

it('a disk that loses bytes of an open or of a complete file is reported', () => {
  const failure = new Error('EIO');
  const disk = {
    fdatasync: (_fd: number, call: (error: Error) => void) => call(failure),
    close: () => undefined,
  } as unknown as Disk;
  const [failed, closed] = [jest.fn(), jest.fn()];
  const durable = new Durable(path(), 0, disk, { failed, closed });
  durable.isDirty = true;
  durable.sync(1);
  durable.complete(1);
  durable.closeComplete();
  expect(failed.mock.calls).toEqual([[failure], [failure]]);
  expect(closed).not.toHaveBeenCalled();
});
