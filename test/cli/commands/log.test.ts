import { describe, expect, it } from '@jest/globals';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { from, lastValueFrom } from 'rxjs';
import { statusText } from '../../../src/cli/commands/log.js';
import { feedLog, inspectLog, type LogStatus } from '../../../src/log/index.js';
import { startOf } from '../../../src/protocol/place.js';
import { fencesOf } from '../../docs/fences.js';
import { frameAt, opening, start } from '../support/events.js';
import { commandRunner, FakeOutput } from '../support/fakes.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
const command = commandRunner();
const log = (args: string) => command(`log ${args}`);

let count = 0;
const frames = Array.from({ length: 40 }, (_, n) => frameAt(n, `{"n":${n}}`));
const logged = async (): Promise<string> => {
  const path = folder.path(`log-${(count += 1)}`);
  await lastValueFrom(from([...opening(0, 1), ...frames]).pipe(feedLog(path, { segmentBytes: 3_000 }).append()));
  return path;
};
const firstFile = (path: string): string => join(path, '0000000000000000.ndjson');

describe('log status', () => {
  it('writes all of it as JSON', async () => {
    const path = await logged();
    const { stdout, exit } = log(`status ${path} --json`);
    expect(await exit).toBe(0);
    expect(JSON.parse(stdout.text)).toEqual(JSON.parse(JSON.stringify(await inspectLog(path))));
  });

  it('prints what docs/log.md shows', async () => {
    const path = folder.path('shown');
    const payload = (n: number): string => JSON.stringify({ id: n, pad: 'x'.repeat(120) });
    const shown = Array.from({ length: 20_000 }, (_, n) => frameAt(5 * n, payload(n)));
    const [, , opened] = opening(-20, 1);
    await lastValueFrom(
      from([{ ...opened!, completeFrom: start }, ...shown]).pipe(feedLog(path, { segmentBytes: 2_000_000 }).append()),
    );
    mkdirSync(join(path, 'cursors'));
    const { line } = await inspectLog(path);
    const cursor = { offset: 19_500, frames: 19_499, holes: 0, at: start + 5 * 19_500, line };
    writeFileSync(join(path, 'cursors/alerts.json'), JSON.stringify(cursor));
    const status = await inspectLog(path);
    const now = (status.writer?.writtenAt ?? 0) + 3_000;
    const printed = statusText({ ...status, path: 'market', line: 'a1b2c3d4e5f6' }, now).join('\n');
    const [guide = ''] = fencesOf('docs/log.md').flatMap(({ code }) => (code.startsWith('log  ') ? [code] : []));
    expect(printed.replaceAll('T00:', 'T09:')).toBe(guide);
  });

  const none: LogStatus = {
    ...{ path: 'market', line: undefined, segments: [], offset: 0, end: 0, frames: 0, bytes: 0 },
    ...{ from: undefined, to: undefined, writer: undefined, consumers: [] },
  };
  const writer = { pid: 7, log: 'a', boot: 'b', run: 0, offset: 0, at: start, writtenAt: start, closed: false };
  const segment = { path: 'p', isCompressed: false, bytes: 1_000, frames: 1, from: undefined, to: undefined };
  const segments = Array.from({ length: 20 }, (_, offset) => ({ ...segment, offset, end: offset + 1 }));

  it.each<[string, Partial<LogStatus>, string]>([
    ['an empty log', {}, 'writer      none\nfiles       none\nconsumers   none'],
    ['a writer that runs', { writer: { ...writer, isRunning: true } }, 'process 7, written 3.0 s ago'],
    ['a writer that has closed', { writer: { ...writer, isRunning: false, closed: true } }, 'closed 3.0 s ago'],
    ['a writer that is gone', { writer: { ...writer, isRunning: false } }, 'gone: process 7 wrote 3.0 s ago'],
    ['many files', { segments }, 'files       1.0 kB  0 to 1\n            8 more\n            1.0 kB  9 to 10\n'],
    [
      'a consumer without a commit',
      { consumers: [{ name: 'db', position: undefined, behind: 2, behindMs: 1_500 }] },
      'consumers   db: no commit yet, 2 records behind, 1.5 s',
    ],
    [
      'a consumer at the end',
      { consumers: [{ name: 'db', position: startOf('a', 5), behind: 0, behindMs: 0 }] },
      'consumers   db: at 5, up to date',
    ],
  ])('shows %s', (_what, status, words) => {
    expect(statusText({ ...none, ...status }, start + 3_000).join('\n')).toContain(words);
  });
});

describe('log status --verify', () => {
  it('shows the status and that every line is valid', async () => {
    const { stdout, exit } = log(`status ${await logged()} --verify`);
    expect(await exit).toBe(0);
    expect(stdout.text).toMatch(/^log .*\nrecords /);
    expect(stdout.text).toMatch(/\n43 records in \d+ files, 40 frames, .*: every line is valid\n$/);
  });

  it('names the file, the line and the byte of a changed bit, ends with 5, and says what to do', async () => {
    const path = await logged();
    const file = firstFile(path);
    const bytes = readFileSync(file);
    const [before = ''] = bytes.toString('latin1').split('"n\\":3');
    bytes[before.length + 5]! ^= 1;
    writeFileSync(file, bytes);
    expect(await log(`status ${path}`).exit).toBe(0);
    const { stdout, stderr, exit } = log(`status ${path} --verify`);
    expect(await exit).toBe(5);
    const [line, at] = [before.split('\n').length, before.lastIndexOf('\n') + 1];
    expect(stdout.text).toContain(`${file}, line ${line} (byte ${at}): its checksum is wrong\n`);
    expect(stdout.text).toMatch(/^records .*$/m);
    expect(stdout.text).toMatch(/: 1 damaged line\n$/);
    expect(stderr.text).toMatch(/^rx-trade-feed: 1 line of .* can't be read\. .* onDamage: 'gap'\.\n$/);
    const json = log(`status ${path} --verify --json`);
    expect(await json.exit).toBe(5);
    expect(JSON.parse(json.stdout.text)).toMatchObject({ end: 43, damaged: [{ path: file }], tornBytes: 0 });
  });

  it('shows a cursor and a file that are damaged, and everything else', async () => {
    const path = await logged();
    mkdirSync(join(path, 'cursors'));
    writeFileSync(join(path, 'cursors/db.json'), '{}');
    writeFileSync(firstFile(path), readFileSync(firstFile(path), 'latin1').replace('"v":1', '"v":3'), 'latin1');
    const { stdout, exit } = log(`status ${path}`);
    expect(await exit).toBe(0);
    expect(stdout.text).toMatch(/^files .* 0 to \d+, .*its first line is damaged$/m);
    expect(stdout.text).toMatch(/^consumers {3}db: The cursor .*db\.json is damaged\. Correct its `offset`/m);
  });

  it('shows its progress on a terminal', async () => {
    for (const [path, records] of [
      [await logged(), 43],
      [await folder.file('empty', ''), 0],
    ] as const) {
      const stderr = new FakeOutput({ columns: 80, rows: 24 });
      expect(await command(`log status ${path} --verify`, { stderr }).exit).toBe(0);
      expect(stderr.text).toContain(`100% · ${records} records`);
    }
  });

  it('restores the terminal when it is interrupted', async () => {
    const stderr = new FakeOutput({ columns: 80, rows: 24 });
    const { end } = command(`log status ${await logged()} --verify`, { stderr });
    await stderr.until(/\x1b\[1;23r/);
    expect(await end()).toBe(130);
    expect(stderr.text).toMatch(/\x1b\[r[^]*SIGINT came before every line was checked\.\n$/);
  });

  it('shows 20 damaged lines at most; --json has all', async () => {
    const path = await folder.file('damaged', '{"type":"gap"}\n'.repeat(30));
    const { stdout, exit } = log(`status ${path} --verify`);
    expect(await exit).toBe(5);
    expect(stdout.text).toContain('\n… and 10 lines more\n');
    const json = log(`status ${path} --verify --json`);
    expect(await json.exit).toBe(5);
    expect((JSON.parse(json.stdout.text) as { damaged: unknown[] }).damaged).toHaveLength(30);
  });

  it('reports a torn last line, which is no damage', async () => {
    const path = await logged();
    const [last = ''] = (await inspectLog(path)).segments.slice(-1).map((segment) => segment.path);
    appendFileSync(last, '{"offset":4');
    const { stdout, exit } = log(`status ${path} --verify`);
    expect(await exit).toBe(0);
    expect(stdout.text).toMatch(/^the last line has 11 bytes and no end: it is being written, or torn\n/m);
  });
});

describe('log', () => {
  const usage = 'log has one action, and it needs one folder: rx-trade-feed log status FOLDER.';
  it.each([
    ['', 2, "'action'"],
    ['verify x', 2, usage],
    ['status', 2, usage],
    ['status a b', 2, usage],
    ['status missing', 1, 'there is no such file or folder'],
  ])('refuses `%s`', async (args, code, words) => {
    const { stderr, exit } = log(args);
    expect(await exit).toBe(code);
    expect(stderr.text).toContain(words);
  });
});
