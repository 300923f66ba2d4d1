import { describe, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../src/cli/top/snapshot.js';
import { type Row, table } from '../../../src/cli/top/table.js';
import { rowWords } from '../../../src/cli/top/top-views.js';
import { printed, widthOf } from '../../../src/cli/view/line.js';

const now = Date.UTC(2026, 0, 1);

const live: Snapshot = {
  state: 'live',
  stats: {
    framesPerSecond: 20.13,
    bytesPerSecond: 8_431,
    gaps: 2,
    lostMs: 1_240,
    dropped: 0,
    reconnects: { 'access-expired': 1, 'server-shutdown': 2 },
  },
  lastFrameAt: now - 48,
};
const relay: Snapshot = {
  state: 'unknown',
  clients: { count: 3, authorizing: 1, sent: 18_200, missed: 12 },
  cluster: { role: 'following', replica: 'eu-2', owner: 'eu-1' },
};
const rows: readonly Row[] = [
  { name: 'market', snapshot: live },
  { name: 'a.example/status', snapshot: relay },
  { name: 'raw', snapshot: { state: 'stopped', problem: 'Another connection took over.' } },
  { name: 'b.example/status', snapshot: undefined },
];

const shown = (sources: readonly Row[], columns: number, height: number): readonly string[] =>
  table(sources, { startedAt: now - 42_000, now, columns, rows: height }).map((line) =>
    printed(line, columns - 1, false),
  );

describe('table', () => {
  it('shows a row for each source, with details below it', () => {
    expect(shown(rows, 90, 24)).toEqual([
      ' rx-trade-feed top                                                                   0:42',
      '',
      ' source            state           frames/s      age  gaps  reconnects  clients   bytes/s',
      ' market            ● live              20.1    48 ms     2           3        -    8.4 kB',
      '   reconnects after server-shutdown (2), access-expired (1); 1.2 s without frames',
      ' a.example/status  ? unknown              -        -     -           -        3         -',
      '   3 clients, 1 waiting for authorize, 18,200 frames sent, 12 missed',
      '   replica eu-2: following, the owner is eu-1',
      ' raw               ■ stopped              -        -     -           -        -         -',
      '   Another connection took over.',
      ' b.example/status  ○ connecting           -        -     -           -        -         -',
      '',
      ' q or Ctrl-C ends it.',
    ]);
  });

  it('removes columns, details and rows that do not fit', () => {
    const small = shown(rows, 46, 8);
    expect(small[2]).toBe(' source            state           frames/s');
    expect(small.slice(3, 6)).toEqual([
      ' market            ● live              20.1',
      ' a.example/status  ? unknown              -',
      ' … and 2 more',
    ]);
    for (const columns of [1, 5, 20, 46, 90, 300])
      for (const height of [1, 2, 6, 9, 50]) {
        const lines = shown(rows, columns, height);
        expect(lines.length).toBeLessThanOrEqual(height);
        expect(Math.max(...lines.map(widthOf))).toBeLessThan(columns);
      }
  });

  it('marks a live feed without frames, and shows no control character of a name', () => {
    const silent = { ...live, lastFrameAt: now - 12_000 };
    const colored = table([{ name: '\x1b[2Jx', snapshot: silent }], { startedAt: now, now, columns: 90, rows: 24 })
      .map((line) => printed(line, 89, true))
      .join('\n');
    expect(colored).toContain('\x1b[33m12 s\x1b[0m');
    expect(colored).not.toContain('\x1b[2J');
  });
});

describe('rowWords', () => {
  it('describes a source in one line', () => {
    expect(rows.map((row) => rowWords(row, now))).toEqual([
      'market live · 20.1 frames/s · last frame 48 ms ago · 2 gaps · reconnects after server-shutdown (2), access-expired (1); 1.2 s without frames',
      'a.example/status unknown · 3 clients, 1 waiting for authorize, 18,200 frames sent, 12 missed · replica eu-2: following, the owner is eu-1',
      'raw stopped · Another connection took over.',
      'b.example/status connecting',
    ]);
  });
});
