import { describe, expect, it } from '@jest/globals';
import type { CliEvent } from '../../../src/cli/follow/event.js';
import { emptyTally, tallied, type Tally } from '../../../src/cli/follow/tally.js';
import { printed, widthOf } from '../../../src/cli/view/line.js';
import { panel } from '../../../src/cli/view/panel.js';
import { statusLine, summaryLine, summaryLines } from '../../../src/cli/view/words.js';
import { ending, expired, frameAt, gap, opening, start } from '../support/events.js';

const tallyOf = (...events: readonly CliEvent[]): Tally => events.reduce(tallied, emptyTally('market', start));
const ticks = (fromMs: number, toMs: number, frames: number): readonly CliEvent[] =>
  Array.from({ length: Math.floor((toMs - fromMs) / 500) }, (_, n) => fromMs + n * 500).flatMap((ms) => [
    ...Array.from({ length: frames }, (_, n) =>
      frameAt(ms + n + 1, `{"batch":${ms + n},"trades":[${'{"price":"3000.25"},'.repeat(20)}]}`),
    ),
    { type: 'tick' as const, at: start + ms + 500 },
  ]);

const begun = tallyOf(...opening(0, 1).slice(0, 1));
const live = tallyOf(...opening(0, 1), ...ticks(500, 20_000, 10));
const waiting = tallyOf(
  ...opening(0, 1),
  ...ticks(500, 10_000, 10),
  ...ending(10_000, { stage: 'stream', closeCode: 1006 }, 1_200, 3),
);
const back = tallyOf(
  ...opening(0, 1),
  ...ticks(500, 10_000, 10),
  ...ending(10_000, expired, 0),
  ...opening(10_000, 2),
  gap(10_000, 10_020, expired),
  frameAt(10_030, '\x00\x01', { isBinary: true, connection: 2 }),
  { type: 'tick', at: start + 10_500 },
);

const next = ['npx rx-trade-feed serve', 'npx rx-trade-feed listen | jq .'];
const drawn = (tally: Tally, columns: number, rows = 24): string[] =>
  panel(tally, { service: 'local service, with an outage every 30 s', next, columns, rows }).map((line) =>
    printed(line, columns - 1, false),
  );

describe('the panel', () => {
  it.each([60, 80, 100])('of a live feed in %d columns', (columns) => {
    expect(`\n${drawn(live, columns).join('\n')}\n`).toMatchSnapshot();
  });

  it.each(Object.entries({ begun, waiting, back }))('of a feed that is %s', (_, tally) => {
    expect(`\n${drawn(tally, 80).join('\n')}\n`).toMatchSnapshot();
  });

  it.each([1, 20, 40, 60, 79, 80, 100, 200])(
    'is at most %d columns wide, and at most as long as the terminal',
    (columns) => {
      for (const tally of [begun, live, waiting, back]) {
        for (const rows of [1, 5, 24, 50]) {
          const lines = drawn(tally, columns, rows);
          expect(Math.max(...lines.map(widthOf))).toBeLessThan(Math.max(columns, 1));
          expect(lines.length).toBeLessThanOrEqual(rows);
        }
      }
    },
  );

  it('shows no control characters of a payload', () => {
    const nasty = tallyOf(...opening(0, 1), frameAt(30, '\x1b[2J\x1b]0;owned\x07'));
    expect(drawn(nasty, 80).join('\n')).toContain('␛[2J␛]0;owned␇');
    expect(drawn(nasty, 80).join('')).not.toMatch(/\p{Cc}/u);
  });

  it('has the same width with colours', () => {
    const lines = panel(live, { service: 'x', next, columns: 80, rows: 24 });
    for (const line of lines) {
      expect(
        printed(line, 79, true)
          .replaceAll(/\x1b\[\d+m/g, '')
          .trimEnd(),
      ).toBe(printed(line, 79, false));
    }
    expect(printed(lines[2] ?? [], 79, true)).toContain('\x1b[32m●\x1b[0m');
  });
});

describe('the status line', () => {
  it.each(Object.entries({ begun, live, waiting, back }))('of a feed that is %s', (_, tally) => {
    expect(printed(statusLine(tally), 200, false)).toMatchSnapshot();
  });
});

describe('the summary', () => {
  it.each(Object.entries({ begun, live, waiting, back }))('of a feed that was %s', (_, tally) => {
    expect(`\n${summaryLines(tally).join('\n')}\n\n${summaryLine(tally)}\n`).toMatchSnapshot();
  });

  it('reports dropped lines and several causes', () => {
    const tally = tallyOf(
      ...ending(1, expired, 0),
      ...ending(2, expired, 0),
      ...ending(3, { stage: 'ticket', status: 503 }, 0),
    );
    expect(summaryLines(tally, 3)).toContain('  reconnects  3: 2 access-expired, 1 credential-service-unavailable');
    expect(summaryLines(tally, 3)).toContain('  dropped     3 lines: the reader of stdout was too slow');
    expect(summaryLine(tally, 1)).toMatch(/; dropped: 1 line$/);
  });
});
