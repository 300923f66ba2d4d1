import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { from } from 'rxjs';
import { run } from '../../../src/cli/run.js';
import { type Frame, type Gap, recordTo } from '../../../src/index.js';
import { frameAt, gap, start } from '../support/events.js';
import { type FakeContext, fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';
import { tempFolder } from '../support/temp-folder.js';
import { waitFor } from '../../support/wait-for.js';

const folder = tempFolder();
const contexts: FakeContext[] = [];
afterEach(() => {
  for (const { interrupt$ } of contexts.splice(0)) interrupt$.next('SIGTERM');
});

const replay = (
  args: readonly string[],
  given: Parameters<typeof fakeContext>[0] = {},
): { context: FakeContext; exit: Promise<number> } => {
  const context = fakeContext(given);
  contexts.push(context);
  return { context, exit: run(['replay', ...args], context) };
};

/** Replaces the timers. Files and streams continue in real time. */
const fakeTime = (): void => {
  jest.useFakeTimers({ doNotFake: ['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate'] });
};
afterEach(() => {
  jest.useRealTimers();
});
/** Waits until the command has read the next event and waits for its time: one timer is for the event, one for the status. */
const isWaiting = () => waitFor(() => jest.getTimerCount() === 2);

let count = 0;
const recorded = (...events: readonly (Frame | Gap)[]): string => {
  const path = folder.path(`recording-${(count += 1)}`);
  from(events).pipe(recordTo(path)).subscribe();
  return path;
};
const hole = gap(20, 40, { stage: 'stream', closeCode: 1001 }) as Gap;
const usual = (): string =>
  recorded(frameAt(0, '{"n":1}'), frameAt(20, '\0\u001b', { isBinary: true }), hole, frameAt(50, 'three'));

describe('replay', () => {
  it('writes the frames as listen does, and prints a summary with the offset to continue from', async () => {
    const { context, exit } = replay([usual(), '--speed', 'max']);
    expect(await exit).toBe(0);
    expect(context.stdout.text).toBe('{"n":1}\nABs=\nthree\n');
    expect(context.stderr.text).toMatch(
      /^\S+Z 3 frames, 14 B; gaps: 1; recorded from 2026-01-01T00:00:00\.000Z to 2026-01-01T00:00:00\.050Z; continue with --offset \d+\n$/,
    );
  });

  it('continues from the printed offset', async () => {
    const path = usual();
    const first = replay([path, '--speed', 'max', '--count', '2']);
    expect(await first.exit).toBe(0);
    expect(first.context.stdout.text).toBe('{"n":1}\nABs=\n');
    const [, offset = ''] = /continue with --offset (\d+)/.exec(first.context.stderr.text) ?? [];
    const second = replay([path, '--speed', 'max', '--offset', offset]);
    expect(await second.exit).toBe(0);
    expect(first.context.stdout.text + second.context.stdout.text).toBe('{"n":1}\nABs=\nthree\n');
    const inside = replay([path, '--offset', '3']);
    expect(await inside.exit).toBe(8);
    expect(inside.context.stderr.text).toContain('rx-trade-feed: The offset 3 is inside a line of the recording');
  });

  it('writes JSON that equals the recording, with its gaps', async () => {
    const path = usual();
    const { context, exit } = replay([path, '--speed', 'max', '--json', '-q']);
    expect(await exit).toBe(0);
    expect(context.stderr.text).toBe('');
    const copy = `${path}-copy`;
    writeFileSync(copy, context.stdout.text);
    const again = replay([copy, '--speed', 'max', '--json', '-q']);
    expect(await again.exit).toBe(0);
    expect(again.context.stdout.text).toBe(context.stdout.text);
    expect(context.stdout.text.split('\n').map((line) => line && (JSON.parse(line) as { type: string }).type)).toEqual([
      'frame',
      'frame',
      'gap',
      'frame',
      '',
    ]);
  });

  it('keeps the recorded intervals, divided by the speed', async () => {
    const path = recorded(frameAt(0, 'a'), frameAt(300, 'b'));
    fakeTime();
    for (const [speed, ms] of [
      ['1', 300],
      ['100', 3],
    ] as const) {
      const { context, exit } = replay([path, '--speed', speed]);
      await context.stdout.until(/^a\n/);
      await isWaiting();
      jest.advanceTimersByTime(ms - 1);
      await nextTurn();
      expect(context.stdout.text).toBe('a\n');
      jest.advanceTimersByTime(1);
      await context.stdout.until(/^a\nb\n$/);
      expect(await exit).toBe(0);
    }
  });

  it('shows the progress on a terminal, and payloads that cannot control it', async () => {
    const [stdout, stderr] = [new FakeOutput({ columns: 100, rows: 10 }), new FakeOutput({ columns: 100, rows: 10 })];
    const path = recorded(frameAt(0, '\x1b[2J'), hole, frameAt(60_000, 'last'));
    const { context, exit } = replay([path], { stdout, stderr });
    await stderr.until(/\d\d% · 1 frame · 1 gap · 2026-01-01T00:00:00\.040Z/);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(130);
    expect(stdout.text).toBe('␛[2J\n');
    expect(stderr.text).toMatch(/\x1b\[r[^]*1 frame, 4 B; gaps: 1; .*; continue with --offset \d+\n$/);
  });

  it('waits for a slow reader of stdout, and skips nothing', async () => {
    const frames = Array.from({ length: 80 }, (_, n) => frameAt(n, `${n} ${'x'.repeat(100_000)}`));
    const { context, exit } = replay([recorded(...frames), '--speed', 'max']);
    context.stdout.block();
    await context.stdout.until(/^0 x/);
    let isOver = false;
    void exit.then(() => (isOver = true));
    await waitFor(() => context.stdout.writableLength >= 1_048_576);
    for (let turns = 0; turns < 20; turns += 1) await nextTurn();
    expect(isOver).toBe(false);
    expect(context.stdout.writableLength).toBeLessThan(1_400_000);
    context.stdout.unblock();
    expect(await exit).toBe(0);
    expect(context.stdout.text.match(/^\d+/gm)).toEqual(frames.map((_, n) => String(n)));
  });

  it('keeps the recorded intervals across the wait for a slow reader, minus the time of the wait', async () => {
    const path = recorded(frameAt(0, 'x'.repeat(1_200_000)), frameAt(400, 'second'), frameAt(500, 'third'));
    fakeTime();
    const { context, exit } = replay([path]);
    context.stdout.block();
    await context.stdout.until(/^x/);
    jest.advanceTimersByTime(100);
    context.stdout.unblock();
    await isWaiting();
    jest.advanceTimersByTime(299);
    await nextTurn();
    expect(context.stdout.text).not.toContain('second');
    jest.advanceTimersByTime(1);
    await context.stdout.until(/second/);
    await isWaiting();
    jest.advanceTimersByTime(99);
    await nextTurn();
    expect(context.stdout.text).not.toContain('third');
    jest.advanceTimersByTime(1);
    await context.stdout.until(/third/);
    expect(await exit).toBe(0);
  });

  it('counts the lines that stdout has accepted, and prints the offset after them when it is interrupted', async () => {
    const path = recorded(frameAt(0, 'first'), frameAt(1, 'x'.repeat(2_000)), hole, frameAt(60_000, 'last'));
    const stuck = replay([path, '--speed', '10000']);
    stuck.context.stdout.block();
    await stuck.context.stdout.until(/^first/);
    await waitFor(() => stuck.context.stdout.writableLength > 2_000);
    stuck.context.interrupt$.next('SIGINT');
    expect(await stuck.exit).toBe(130);
    expect(stuck.context.stderr.text).toMatch(/Z 0 frames, 0 B; .*continue with --offset 0\n$/);
    const left = replay([path, '--speed', '10000']);
    left.context.stdout.block();
    await waitFor(() => left.context.stdout.writableLength > 2_000);
    left.context.stdout.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    expect(await left.exit).toBe(0);
    expect(left.context.stderr.text).toMatch(/Z 0 frames, 0 B; gaps: none; the reader of stdout has exited\n$/);
    const slow = recorded(frameAt(0, 'first'), frameAt(100, 'second'), frameAt(60_000, 'last'));
    const firstLine = readFileSync(slow, 'utf8').indexOf('\n') + 1;
    const some = replay([slow]);
    await some.context.stdout.until(/^first/);
    some.context.stdout.block();
    await some.context.stdout.until(/second/);
    some.context.interrupt$.next('SIGINT');
    expect(await some.exit).toBe(130);
    expect(some.context.stderr.text).toMatch(new RegExp(`Z 1 frame, 5 B; .*continue with --offset ${firstLine}\n$`));
  });

  it.each([
    ['little', 10],
    ['much', 1_200_000],
  ])('ends when its reader has read everything, also when %s waits at the end', async (_much, length) => {
    const { context, exit } = replay([recorded(frameAt(0, 'first'), frameAt(1, 'x'.repeat(length))), '--speed', 'max']);
    context.stdout.block();
    await context.stdout.until(/^first/);
    let isOver = false;
    void exit.then(() => (isOver = true));
    for (let turns = 0; turns < 50; turns += 1) await nextTurn();
    expect(isOver).toBe(false);
    context.stdout.unblock();
    expect(await exit).toBe(0);
    expect(context.stdout.text).toHaveLength('first\n'.length + length + 1);
  });

  it('ends when its reader has exited, and when it is interrupted while the reader does not read', async () => {
    const slow = recorded(frameAt(0, 'first'), frameAt(60_000, 'last'));
    const gone = replay([slow]);
    await gone.context.stdout.until(/first/);
    gone.context.stdout.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    expect(await gone.exit).toBe(0);
    expect(gone.context.stderr.text).toMatch(/; the reader of stdout has exited\n$/);
    const full = replay([slow]);
    await full.context.stdout.until(/first/);
    full.context.stdout.destroy(Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' }));
    expect(await full.exit).toBe(8);
    const stuck = replay([slow]);
    stuck.context.stdout.block();
    await stuck.context.stdout.until(/first/);
    stuck.context.interrupt$.next('SIGTERM');
    expect(await stuck.exit).toBe(143);
    stuck.context.stdout.unblock();
  });

  it('reports that the last lines could not be written', async () => {
    const { context, exit } = replay([usual(), '--speed', 'max']);
    context.stdout.block();
    // It listens for the close of the output once it waits for the last lines.
    await waitFor(() => context.stdout.listenerCount('close') > 0);
    context.stdout.destroy(Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' }));
    expect(await exit).toBe(8);
  });

  it('explains why it cannot read a file', async () => {
    const missing = replay([folder.path('missing')]);
    expect(await missing.exit).toBe(8);
    expect(missing.context.stderr.text).toMatch(
      /^rx-trade-feed: Cannot read the recording .*missing: there is no such file or folder\.\n$/,
    );
    const path = folder.path('no-recording');
    writeFileSync(path, '{"secret":1}\n');
    const other = replay([path]);
    expect(await other.exit).toBe(8);
    expect(other.context.stderr.text).not.toContain('secret"');
  });

  describe('of a recording that ends in a torn line', () => {
    const torn = (...events: readonly (Frame | Gap)[]): { path: string; words: string } => {
      const path = recorded(...events);
      const at = statSync(path).size;
      appendFileSync(path, '{"type":"frame","fe');
      return {
        path,
        words: `The last line of the recording is torn: 19 bytes at byte ${at} were skipped, and its frame or gap is lost.`,
      };
    };
    const lastLine = (text: string): string | undefined => text.trimEnd().split('\n').at(-1);

    it('reports it at the end, in a separate line', async () => {
      const { path, words } = torn(frameAt(0, 'first'), frameAt(1, 'second'));
      const { context, exit } = replay([path, '--speed', 'max']);
      expect(await exit).toBe(0);
      expect(context.stdout.text).toBe('first\nsecond\n');
      expect(context.stderr.text).toMatch(/^\S+Z 2 frames, .*\n\S+Z The last line .*\n$/);
      expect(lastLine(context.stderr.text)).toMatch(new RegExp(`Z ${words}$`));
    });

    it('reports it on a terminal, and with --json, where stdout stays a valid recording', async () => {
      const { path, words } = torn(frameAt(0, 'first'));
      const stderr = new FakeOutput({ columns: 400, rows: 10 });
      const { context, exit } = replay([path, '--json'], { stderr });
      expect(await exit).toBe(0);
      expect(lastLine(stderr.text)).toBe(words);
      expect(context.stdout.text.trimEnd().split('\n')).toHaveLength(1);
    });

    it('does not report it with -q, or when it ends before', async () => {
      const { path } = torn(frameAt(0, 'first'), frameAt(1, 'second'));
      const quiet = replay([path, '-q']);
      expect(await quiet.exit).toBe(0);
      expect(quiet.context.stderr.text).toBe('');
      const counted = replay([path, '--speed', 'max', '--count', '1']);
      expect(await counted.exit).toBe(0);
      expect(counted.context.stderr.text).not.toContain('torn');
    });

    it('reports it when the reader of stdout was slow with the last complete line', async () => {
      const { path, words } = torn(frameAt(0, 'x'.repeat(1_200_000)));
      const { context, exit } = replay([path]);
      context.stdout.block();
      await context.stdout.until(/^x/);
      context.stdout.unblock();
      expect(await exit).toBe(0);
      expect(context.stderr.text).toContain(words);
    });
  });

  it('prints only the summary for an empty recording', async () => {
    const path = folder.path('empty');
    writeFileSync(path, '');
    const { context, exit } = replay([path]);
    expect(await exit).toBe(0);
    expect(context.stderr.text).toMatch(/^\S+Z 0 frames, 0 B; gaps: none; continue with --offset 0\n$/);
    expect(start).toBeGreaterThan(0);
  });
});
