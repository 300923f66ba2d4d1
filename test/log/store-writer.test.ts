import { describe, expect, it, jest } from '@jest/globals';
import { BehaviorSubject, Subject } from 'rxjs';
import type { EngineFailure } from '../../src/cluster/index.js';
import type { LogError } from '../../src/log/index.js';
import { type LineStore, type Stored, StoreAway } from '../../src/log/line-store.js';
import { fakeTimers } from '../support/fake-timers.js';
import { waitFor } from '../support/wait-for.js';
import { memoryLog } from './memory-log.js';
import { all, append, frame, frames, gapsOf, opened, startWriter, texts, textsOf } from './support.js';

/** Stores that refuse what is appended with an error, if there is one. */
const refusing = (changes: Parameters<typeof memoryLog>[1] = {}) => {
  const state = { error: undefined as Error | undefined, isAtOnce: false, ends: 0, refusals: 0 };
  const change = (store: LineStore): Partial<LineStore> => {
    const reports$ = new Subject<Stored>();
    store.stored$.subscribe(reports$);
    return {
      stored$: reports$,
      end: () => {
        state.ends += 1;
        return store.end();
      },
      append: (head, bytes, only) => {
        const { error } = state;
        if (error === undefined || only === 'live') return store.append(head, bytes, only);
        state.refusals += 1;
        const refuse = () => reports$.next({ refused: 'full', error });
        if (state.isAtOnce) refuse();
        else queueMicrotask(refuse);
      },
    };
  };
  return { state, open: memoryLog(change, changes) };
};

const startNoting = (log: ReturnType<ReturnType<typeof memoryLog>>) => {
  const noted: LogError[] = [];
  return { noted, ...startWriter(log, { onError: (error: LogError) => void noted.push(error) }) };
};

describe('a writer of a log in a store', () => {
  it('reports once what the store refuses while it begins, and subscribes once it takes it', async () => {
    const { state, open } = refusing();
    state.error = new Error('no room');
    const writer = startNoting(open());
    writer.send(opened(), frame(1));
    await waitFor(() => state.refusals >= 3);
    expect(writer.noted).toEqual([expect.objectContaining({ code: 'log-write-failed' })]);
    expect(writer.noted[0]!.message).toContain('no room');
    state.error = undefined;
    await waitFor(async () => textsOf(await all(open()).catch(() => [])).length === 1);
    await writer.end();
    expect([...writer.errors, ...writer.noted]).toHaveLength(1);
  });

  it('reports nothing if the end of the last writer comes while it begins', async () => {
    let isLate = true;
    const open = memoryLog((store) => {
      const reports$ = new Subject<Stored>();
      store.stored$.subscribe(reports$);
      return {
        stored$: reports$,
        append: (head, bytes, only) => {
          if (!isLate) return store.append(head, bytes, only);
          isLate = false;
          queueMicrotask(() => reports$.next({ refused: 'fenced', error: new Error('wrong last sequence') }));
        },
      };
    });
    const writer = startNoting(open());
    writer.send(opened(), frame(1));
    await writer.end();
    expect([...writer.errors, ...writer.noted]).toEqual([]);
    expect(textsOf(await all(open()))).toEqual(texts(1, 2));
  });

  it('reports a refusal once, and again after it has worked', async () => {
    const { state, open } = refusing();
    const writer = startNoting(open());
    writer.send(opened(), frame(1));
    for (let round = 1; round <= 3; round += 1) {
      await waitFor(async () => textsOf(await all(open()).catch(() => [])).length === round);
      state.error = new Error(`no room ${round}`);
      const before = state.refusals;
      writer.send(frame(round + 1));
      await waitFor(() => state.refusals >= before + 3);
      expect(writer.noted).toHaveLength(round);
      state.error = undefined;
    }
    await writer.end();
    expect(textsOf(await all(open()))).toEqual(texts(1, 5));
  });

  it('stops at a refusal without a function: it asks the store for nothing more', async () => {
    const { state, open } = refusing();
    const writer = startWriter(open());
    writer.send(opened(), frame(1));
    await waitFor(async () => textsOf(await all(open()).catch(() => [])).length === 1);
    state.error = new Error('no room');
    writer.send(frame(2));
    await waitFor(() => writer.errors.length > 0);
    const { ends, refusals } = state;
    state.error = undefined;
    // Another one takes it over at once.
    await append(open(), [opened(5_000), frame(3, 5_001)]);
    expect(writer.errors).toEqual([expect.objectContaining({ code: 'log-write-failed' })]);
    expect(textsOf(await all(open()))).toEqual(['{"n":1}', '{"n":3}']);
    expect([state.refusals, state.ends - ends]).toEqual([refusals, expect.any(Number)]);
  });

  it('counts what finds no room, and stores what it has kept in order', async () => {
    const { state, open } = refusing();
    const writer = startNoting(open({ maxWaitingBytes: 4_000 }));
    writer.send(opened(), frame(1));
    await waitFor(async () => textsOf(await all(open()).catch(() => [])).length === 1);
    state.error = new StoreAway('away');
    writer.send(...frames(2, 1_002));
    await waitFor(() => writer.noted.length > 0);
    expect(writer.noted[0]!.message).toContain('more than 4000 bytes wait');
    state.error = undefined;
    await waitFor(async () => gapsOf(await all(open())).length > 0);
    writer.send(frame(1_002));
    await writer.end();
    const records = await all(open());
    const [{ missed = 0 } = {}] = gapsOf(records);
    expect(missed).toBeGreaterThan(0);
    expect(textsOf(records)).toEqual([...texts(1, 1_002 - missed), ...texts(1_002, 1_003)]);
  });

  it.each(['a function', 'error'])('reports once that its connection was closed: to %s', async (onError) => {
    const connected$ = new BehaviorSubject(true);
    const { state, open } = refusing({ connected$ });
    const noted: LogError[] = [];
    const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue();
    const writer = startWriter(
      open(),
      onError === 'error' ? {} : { onError: (error: LogError) => void noted.push(error) },
    );
    writer.send(opened(), frame(1));
    await waitFor(async () => textsOf(await all(open()).catch(() => [])).length === 1);
    [state.error, state.isAtOnce] = [new Error('disconnected'), true];
    using _timers = fakeTimers();
    connected$.complete();
    await jest.advanceTimersByTimeAsync(10_000);
    expect(onError === 'error' ? writer.errors : noted).toEqual([
      expect.objectContaining({ message: expect.stringContaining('its connection was closed') }),
    ]);
    const warnings = emitWarning.mock.calls;
    emitWarning.mockRestore();
    expect(warnings).toEqual([]);
  });

  it('reports once, and at once, what keeps it from connecting', async () => {
    const failures$ = new Subject<EngineFailure>();
    const { state, open } = refusing({ failures$ });
    const writer = startNoting(open());
    writer.send(opened(), frame(1));
    await waitFor(async () => textsOf(await all(open()).catch(() => [])).length === 1);
    state.error = new StoreAway('disconnected');
    writer.send(frame(2));
    await waitFor(() => failures$.observed);
    failures$.next({ operation: 'connect', error: new StoreAway('refused') });
    expect(writer.noted).toEqual([]);
    for (let n = 0; n < 2; n += 1)
      failures$.next({ operation: 'connect', error: new Error('WRONGPASS invalid password') });
    expect(writer.noted.map(({ message }) => message)).toEqual([
      expect.stringContaining('Check the user and the password'),
    ]);
    state.error = undefined;
    await writer.end();
    expect(failures$.observed).toBe(false);
    expect(textsOf(await all(open()))).toEqual(texts(1, 3));
  });

  it('reports once that an end fails, in the words of its store', async () => {
    const { state, open } = refusing();
    const noted: LogError[] = [];
    const source = new Subject<unknown>();
    const log = open();
    const subscription = source.pipe(log.append({ onError: (error) => void noted.push(error) })).subscribe();
    await waitFor(() => source.observed);
    for (const event of [opened(), frame(1)]) source.next(event);
    state.error = new Error('no room');
    using _timers = fakeTimers();
    subscription.unsubscribe();
    const closed = log.close();
    await jest.advanceTimersByTimeAsync(10_000);
    await closed;
    expect(noted.map(({ message }) => message)).toEqual([expect.stringContaining('no room')]);
  });

  it('is awaited by `close`, also if that ends its source', async () => {
    const open = memoryLog();
    const log = open();
    const source = new Subject<unknown>();
    source.pipe(log.append()).subscribe();
    await waitFor(() => source.observed);
    for (const event of [opened(), frame(1)]) source.next(event);
    await log.close();
    expect(source.observed).toBe(false);
    expect(textsOf(await all(open()))).toEqual(texts(1, 2));
  });
});
