/** @lane clock */
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { from, Subject } from 'rxjs';
import type { Frame, Gap } from '../../../src/index.js';
import { feedLog } from '../../../src/log/index.js';
import { writeFrame } from '../../../src/operators/node/write-frame.js';
import { waitFor } from '../../support/wait-for.js';
import { frameAt, gap, start } from '../support/events.js';
import { commandRunner, FakeOutput } from '../support/fakes.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
const command = commandRunner();
const replay = (args: string, given?: Parameters<typeof command>[1]) => command(`replay ${args}`, given);

/** Fakes the timers. Files and streams stay in real time. */
const fakeTime = (): void => {
  jest.useFakeTimers({ doNotFake: ['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate'] });
};
afterEach(() => {
  jest.useRealTimers();
});
/** Waits until the command waits for the next event: one timer for that, one for the status. */
const isWaiting = () => waitFor(() => jest.getTimerCount() === 2);
const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
};

let count = 0;
const recorded = (...events: readonly (Frame | Gap)[]): string => {
  const path = folder.path(`log-${(count += 1)}`);
  from(events).pipe(feedLog(path).append()).subscribe();
  return path;
};
const hole = gap(20, 40, { stage: 'stream', closeCode: 1001 }) as Gap;
const usual = (): string =>
  recorded(frameAt(0, '{"n":1}'), frameAt(20, '\0\u001b', { isBinary: true }), hole, frameAt(50, 'three'));

describe('replay', () => {
  it('writes the frames as listen does, and prints a summary with the offset to continue from', async () => {
    const { stdout, stderr, exit } = replay(`${usual()} --speed max`);
    expect(await exit).toBe(0);
    expect(stdout.text).toBe('{"n":1}\nABs=\nthree\n');
    expect(stderr.text).toMatch(
      /^\S+Z 3 frames, 14 B; gaps: 1, 20 ms without frames; recorded from 2026-01-01T00:00:00\.000Z to 2026-01-01T00:00:00\.050Z; continue with --from 4\n$/,
    );
  });

  it('continues from the printed offset', async () => {
    const path = usual();
    const first = replay(`${path} --speed max --count 2`);
    expect(await first.exit).toBe(0);
    expect(first.stdout.text).toBe('{"n":1}\nABs=\n');
    expect(first.stderr.text).toMatch(/continue with --from 2\n$/);
    const second = replay(`${path} --speed max --from 2`);
    expect(await second.exit).toBe(0);
    expect(second.stdout.text).toBe('three\n');
    expect(second.stderr.text).toMatch(/continue with --from 4\n$/);
  });

  it('follows a log that grows, until it is interrupted', async () => {
    const source = new Subject<Frame>();
    const path = folder.path('grows');
    const writer = source.pipe(feedLog(path).append()).subscribe();
    const now = () => Date.now() - start;
    source.next(frameAt(now(), 'one'));
    const { stdout, end } = replay(`${path} --follow`);
    await stdout.until(/^one\n/);
    source.next(frameAt(now(), 'two'));
    await stdout.until(/^one\ntwo\n$/);
    expect(await end()).toBe(0);
    writer.unsubscribe();
  });

  it('writes JSON that equals the lines of the log, with their offsets and without their checksums', async () => {
    const path = usual();
    const { stdout, stderr, exit } = replay(`${path} --speed max --json -q`);
    expect(await exit).toBe(0);
    const [, ...lines] = readFileSync(join(path, '0000000000000000.ndjson'), 'utf8').trimEnd().split('\n');
    const parsed = (text: readonly string[]) => text.map((line) => JSON.parse(line) as unknown);
    const unsealed = lines.map((line) => line.replace(/,"crc": *\d+\}$/, '}'));
    expect(parsed(stdout.text.trimEnd().split('\n'))).toEqual(parsed(unsealed));
    expect(stdout.text).toMatch(/^\{"offset":0,"type":"frame",/);
    expect(stderr.text).toBe('');
  });

  it('shows the progress on a terminal, and payloads that cannot control it', async () => {
    const [stdout, stderr] = [new FakeOutput({ columns: 100, rows: 10 }), new FakeOutput({ columns: 100, rows: 10 })];
    const path = recorded(frameAt(0, '\x1b[2J'), hole, frameAt(60_000, 'last'));
    const { end } = replay(path, { stdout, stderr });
    await stderr.until(/1 frame · 1 gap, 20 ms · 2026-01-01T00:00:00\.040Z/);
    expect(await end()).toBe(130);
    expect(stdout.text).toBe('␛[2J\n');
    expect(stderr.text).toMatch(
      /\x1b\[r[^]*1 frame, 4 B; gaps: 1, 20 ms without frames; [^]*; continue with --from 2\n$/,
    );
  });

  it('reads a file of `listen --json`, and explains why it cannot read another one', async () => {
    const listened = await folder.file('listened', `${writeFrame(frameAt(0, 'a'))}\n`);
    const ofFile = replay(listened);
    expect(await ofFile.exit).toBe(0);
    expect(ofFile.stdout.text).toBe('a\n');
    const missing = replay(folder.path('missing'));
    expect(await missing.exit).toBe(1);
    expect(missing.stderr.text).toMatch(
      /^rx-trade-feed: Can't read the log .*missing: there is no such file or folder\. .*\n$/,
    );
    const other = replay(await folder.file('no-recording', '{"secret":1}\n'));
    expect(await other.exit).toBe(1);
    expect(other.stderr.text).not.toContain('secret"');
  });
});

describe('replay for a slow reader of stdout', () => {
  it('waits, and skips nothing', async () => {
    const frames = Array.from({ length: 80 }, (_, n) => frameAt(n, `${n} ${'x'.repeat(100_000)}`));
    const { stdout, exit } = replay(`${recorded(...frames)} --speed max`);
    stdout.block();
    await stdout.until(/^0 x/);
    let isOver = false;
    void exit.then(() => (isOver = true));
    await waitFor(() => stdout.writableLength > 100_000);
    await turns(20);
    expect(isOver).toBe(false);
    expect(stdout.writableLength).toBeLessThan(600_000);
    stdout.unblock();
    expect(await exit).toBe(0);
    expect(stdout.text.match(/^\d+/gm)).toEqual(frames.map((_, n) => String(n)));
  });

  it('resumes the recorded intervals after waiting for stdout, minus the time it waited', async () => {
    const path = recorded(frameAt(0, 'x'.repeat(1_200_000)), frameAt(400, 'second'), frameAt(500, 'third'));
    fakeTime();
    const { stdout, exit } = replay(path);
    stdout.block();
    await stdout.until(/^x/);
    jest.advanceTimersByTime(100);
    stdout.unblock();
    for (const [text, ms] of [
      ['second', 300],
      ['third', 100],
    ] as const) {
      await isWaiting();
      jest.advanceTimersByTime(ms - 1);
      await nextTurn();
      expect(stdout.text).not.toContain(text);
      jest.advanceTimersByTime(1);
      await stdout.until(new RegExp(text));
    }
    expect(await exit).toBe(0);
  });

  it('counts the lines that stdout has accepted, and prints the offset after them when interrupted', async () => {
    const path = recorded(frameAt(0, 'first'), frameAt(1, 'x'.repeat(2_000)), hole, frameAt(60_000, 'last'));
    const stuck = replay(`${path} --speed 10000`);
    stuck.stdout.block();
    await waitFor(() => stuck.stdout.writableLength > 2_000);
    expect(await stuck.end()).toBe(130);
    expect(stuck.stderr.text).toMatch(/Z 0 frames, 0 B; gaps: none\n$/);
    const left = replay(`${path} --speed 10000`);
    left.stdout.block();
    await waitFor(() => left.stdout.writableLength > 2_000);
    left.stdout.break('EPIPE');
    expect(await left.exit).toBe(0);
    expect(left.stderr.text).toMatch(/Z 0 frames, 0 B; gaps: none; the reader of stdout has exited\n$/);
    const slow = recorded(frameAt(0, 'first'), frameAt(100, 'second'), frameAt(60_000, 'last'));
    const some = replay(slow);
    await some.stdout.until(/^first/);
    some.stdout.block();
    await some.stdout.until(/second/);
    expect(await some.end()).toBe(130);
    expect(some.stderr.text).toMatch(/Z 1 frame, 5 B; .*continue with --from 1\n$/);
  });
});
