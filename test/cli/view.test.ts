import { describe, expect, it } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { type CliEvent, type Status, statusAfter, statusAt } from '../../src/cli/follow.js';
import { failureWords, whatHappened } from '../../src/cli/errors.js';
import { panel, panelView } from '../../src/cli/commands/demo.js';
import { gapWords, statusLine, statusView, summaryLines, totalWords } from '../../src/cli/status.js';
import { lineView, pinnedLine, screen, withKeys } from '../../src/cli/terminal.js';
import { amount, bytes, duration, printed, shortened } from '../../src/cli/text.js';
import { spread, widthOf } from '../../src/cli/text.js';
import { createTradeFeedError, TradeFeedError } from '../../src/index.js';
import { serviceMeanings } from '../../src/protocol/failures/classify.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { waitFor } from '../support/wait-for.js';
import { ending, expired, frameAt, gap, opening, start } from './support/events.js';
import { fakeContext, FakeOutput } from './support/fakes.js';

describe('a text', () => {
  it.each<[number, (number: number) => string, string]>([
    [9_949, duration, '9.9 s'],
    [9_950, duration, '10 s'],
    [59_500, duration, '1 min 00 s'],
    [400_000_000, duration, '111 h 06 min'],
    [999, bytes, '999 B'],
    [5e15, bytes, '5,000 TB'],
    [99.96, amount, '100'],
  ])('for %d (with %p) is %s', (number, format, text) => expect(format(number)).toBe(text));

  it.each([
    ['abcdef', 6, 'abcdef'],
    ['abcdef', 5, 'abcd…'],
    ['abcdef', 0, ''],
    ['価格価格', 4, '価…'],
    ['e\u0301e\u0301e\u0301', 3, 'e\u0301e\u0301e\u0301'],
    ['🚀🚀', 3, '🚀…'],
  ])('shortens %s to %d columns: %s', (text, columns, short) => {
    expect(shortened(text, columns)).toBe(short);
    expect(widthOf(short)).toBeLessThanOrEqual(columns);
  });

  it('is cut at the width, keeps the colors of its spans, and loses a right part that does not fit', () => {
    expect(printed([['abc'], ['def', 'red'], ['ghi', 'dim']], 5, true)).toBe('abc\x1b[31md…\x1b[39m');
    expect(printed([['abc', 'red']], 0, true)).toBe('');
    expect(printed(spread([['ab']], [['cd']], 8), 8)).toBe('ab    cd');
    expect(printed(spread([['ab']], [['cd']], 5), 5)).toBe('ab');
  });
});

describe('a terminal', () => {
  it('is drawn without clearing it first, and restored at the end', () => {
    const output = new FakeOutput({ columns: 20, rows: 5 });
    const picture = screen(output);
    picture.draw(['one', 'two']);
    picture.close();
    const drawn = '\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J';
    expect(output.text).toBe(`\x1b[?1049h\x1b[?25l${drawn}\x1b[?25h\x1b[?1049l`);
  });

  it('has a status line on its bottom row, which follows the size and goes away at the end', () => {
    const output = new FakeOutput({ columns: 20, rows: 10 });
    const line = pinnedLine(output);
    line.draw(['the status']);
    const begun = '\n\x1b7\x1b[1;9r\x1b8\x1b[1A';
    expect(output.text).toBe(`${begun}\x1b7\x1b[10;1H\x1b[2Kthe status\x1b8`);
    output.text = '';
    output.rows = 12;
    line.draw(['the next']);
    const moved = '\x1b7\x1b[r\x1b8\x1b7\x1b[10;1H\x1b[2K\x1b8\x1b7\x1b[1;11r\x1b8\x1b7\x1b[12;1H\x1b[2Kthe next\x1b8';
    expect(output.text).toBe(moved);
    line.close();
    expect(output.text).toBe(`${moved}\x1b7\x1b[r\x1b8\x1b7\x1b[12;1H\x1b[2K\x1b8`);
  });

  it('has an empty status line before the first status', () => {
    const stderr = new FakeOutput({ columns: 20, rows: 10 });
    const none = () => [];
    const view = lineView<string>({ status: true }, fakeContext({ stderr }), none);
    const begun = stderr.text;
    stderr.emit('resize');
    expect(stderr.text.slice(begun.length)).not.toContain('undefined');
    view.show('none');
    view.close();
    expect(stderr.text.endsWith('\x1b7\x1b[r\x1b8\x1b7\x1b[10;1H\x1b[2K\x1b8')).toBe(true);
    const unused = new FakeOutput({ columns: 20, rows: 10 });
    lineView({ status: true }, fakeContext({ stderr: unused }), none).close();
    expect(unused.text).toBe('\n\x1b7\x1b[1;9r\x1b8\x1b[1A\x1b7\x1b[r\x1b8\x1b7\x1b[10;1H\x1b[2K\x1b8');
  });

  it.each(['q', 'Q', '\x03'])('is in raw mode while its keys are read, and %j interrupts', async (key) => {
    const modes: boolean[] = [];
    const setRawMode = (isRaw: boolean) => modes.push(isRaw);
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode });
    const interrupts: string[] = [];
    const subscription = withKeys(fakeContext({ stdin })).interrupt$.subscribe((name) => interrupts.push(name));
    stdin.write('x');
    stdin.write(key);
    await waitFor(() => interrupts.length > 0);
    expect(modes).toEqual([true]);
    subscription.unsubscribe();
    expect([interrupts, modes, stdin.isPaused()]).toEqual([['SIGINT'], [true, false], true]);
  });

  it('interrupts the command when it is gone', () => {
    const stdin = Object.assign(new PassThrough({ autoDestroy: false }), {
      isTTY: true,
      setRawMode: (isRaw: boolean) => isRaw || stdin.emit('error', new Error('setRawMode EIO')),
    });
    const interrupts: string[] = [];
    const subscription = withKeys(fakeContext({ stdin })).interrupt$.subscribe((name) => interrupts.push(name));
    stdin.emit('error', new Error('read EIO'));
    subscription.unsubscribe();
    expect(interrupts).toEqual(['SIGHUP']);
  });
});

it('stdin is not read if it is a pipe', () => {
  const context = fakeContext();
  expect(withKeys(context)).toBe(context);
});

const statusOf = (...events: readonly CliEvent[]): Status => events.reduce(statusAfter, statusAt('market', start));
const ticks = (fromMs: number, toMs: number): readonly CliEvent[] =>
  Array.from({ length: Math.floor((toMs - fromMs) / 500) }, (_, n) => fromMs + n * 500).flatMap((ms) => [
    ...Array.from({ length: 10 }, (_, n) =>
      frameAt(ms + n + 1, `{"batch":${ms + n},"trades":[${'{"price":"3000.25"},'.repeat(20)}]}`),
    ),
    { type: 'tick' as const, at: start + ms + 500 },
  ]);

const begun = statusOf(...opening(0, 1).slice(0, 1));
const live = statusOf(...opening(0, 1), ...ticks(500, 20_000));
const lost = ending(10_000, { stage: 'stream', closeCode: 1006 }, 1_200, 3);
const waiting = statusOf(...opening(0, 1), ...ticks(500, 10_000), ...lost);
const back = statusOf(
  ...opening(0, 1),
  ...ticks(500, 10_000),
  ...ending(10_000, expired, 0),
  ...opening(10_000, 2),
  gap(10_000, 10_020, expired),
  frameAt(10_030, '\x00\x01', { isBinary: true, connection: 2 }),
  { type: 'tick', at: start + 10_500 },
);

const content = {
  service: 'local service',
  outage: () => 'next outage in 8 s',
  next: ['npx rx-trade-feed serve', 'paste its two exports, then run npx rx-trade-feed listen | jq .'],
};
const drawn = (status: Status, columns = 80, rows = 24): string[] =>
  panel(status, { ...content, columns, rows }).map((line) => printed(line, columns - 1));

describe('the panel', () => {
  it.each([1, 20, 40, 60, 79, 80, 100, 200])('fits a terminal of %d columns and of any height', (columns) => {
    for (const status of [begun, live, waiting, back])
      for (const rows of [1, 5, 24, 50]) {
        const lines = drawn(status, columns, rows);
        expect(Math.max(...lines.map(widthOf))).toBeLessThan(columns);
        expect(lines.length).toBeLessThanOrEqual(rows);
      }
  });

  it.each([40, 60, 80])('keeps the latest events, the state, the countdown and Ctrl-C in %d columns', (columns) => {
    for (let rows = 1; rows < 24; rows += 1) {
      const lines = drawn(back, columns, rows);
      expect(lines).toHaveLength(rows);
      const text = lines.join('\n');
      const events = lines.filter((line) => /^ +10\.\d\d s /.test(line));
      expect(text).toContain('live: market, connection 2');
      if (rows > 1) expect(lines.at(-1)).toBe(' Ctrl-C ends it with a summary.');
      if (rows > 2) expect(events.at(-1)).toMatch(/^ +10\.02 s +Frames may be missing/);
      if (rows > 3)
        expect(lines[0]).toMatch(columns > 50 ? /^ rx-trade-feed .*next outage in 8 s$/ : /^ rx-trade-feed/);
      expect(events).toHaveLength(Math.min(6, Math.max(rows - 2, 0) && (rows === 3 ? 1 : rows - 3)));
    }
    expect(drawn(back, columns, 24).slice(-4, -1).join('')).toContain('terminal 3  paste its');
  });

  it('is redrawn when the terminal is resized, with the same text in color', () => {
    const stdout = new FakeOutput({ columns: 80, rows: 24 });
    const view = panelView(fakeContext({ stdout }), content);
    view.show({ event: { type: 'tick', at: start }, status: live });
    stdout.text = '';
    stdout.columns = 60;
    stdout.emit('resize');
    expect(stdout.text).toContain('\x1b[32m●\x1b[39m');
    const lines = stripVTControlCharacters(stdout.text).split('\r\n');
    expect(lines.map((line) => line.trimEnd())).toEqual(drawn(live, 60));
    view.close();
    stdout.text = '';
    stdout.emit('resize');
    expect(stdout.text).toBe('');
  });

  it('shows no control characters from a payload', () => {
    const lines = drawn(statusOf(...opening(0, 1), frameAt(30, '\x1b[2J\x1b]0;owned\x07')));
    expect(lines.join('\n')).toContain('␛[2J␛]0;owned␇');
    expect(lines.join('')).not.toMatch(/\p{Cc}/u);
  });
});

describe('the status line and the summary', () => {
  const [away] = ending(10_000, { stage: 'stream', closeCode: 1006 }, 0);

  it('say of a gap of 0 ms that it happened, without a number of ms', () => {
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: start });
    const moment = { type: 'gap', from: start, to: start, durationMs: 0, failure } as const;
    const status = statusOf(...opening(0, 1), moment);
    expect([totalWords(status), gapWords(status)]).toEqual(['0 frames · 1 gap', '1']);
  });
  it.each<[Status, RegExp]>([
    [back, /^● live: market, connection 2 · 17\.0 frames\/s · 7\.1 kB\/s · 191 frames · 1 gap, 20 ms$/],
    [{ ...waiting, now: start + 11_200 }, /^○ reconnecting now · /],
    [statusOf(...opening(0, 1).slice(0, 2)), /^◐ opening a connection to market · .* · no gaps$/],
    [statusOf(...opening(0, 1), ...lost, ...opening(12_000, 2).slice(0, 1)), /^◐ requesting a ticket for market · /],
    [statusOf(...opening(0, 1), away as CliEvent), /^○ reconnecting now · /],
  ])('show the phase, and the reason or the flow (%#)', (status, line) => {
    expect(printed(statusLine(status), 200)).toMatch(line);
  });

  it('count the reconnects by cause, and say at the end if there was never a connection', () => {
    const twice = [...ending(1, expired, 0), ...ending(2, expired, 0)];
    const causes = statusOf(...twice, ...ending(3, { stage: 'ticket', status: 503 }, 0));
    expect(summaryLines(causes)).toContain('  reconnects  3: 2 access-expired, 1 credential-service-unavailable\n');
    expect(summaryLines({ ...waiting, now: start + 12_000 })).toMatch(/at the end  without a connection for 2\.0 s\n$/);
  });
});

describe('the log of a feed', () => {
  it.each([
    ['once, before the third reconnect of a feed that never had a connection', [], 1],
    ['never for a feed that had one', opening(0, 1), 0],
  ] as const)('names doctor %s', (_when, before, times) => {
    const context = fakeContext();
    const view = statusView({ status: true }, context);
    const failures = [1, 2, 3, 4].flatMap((n) => ending(n * 1_000, { stage: 'ticket', status: 500 }, 10, n));
    let status = statusOf(...before);
    for (const event of failures) view.show({ event, status: (status = statusAfter(status, event)) });
    expect(context.stderr.text.match(/rx-trade-feed doctor/g) ?? []).toHaveLength(times);
    expect(context.stderr.text).toMatch(/Z Disconnected, ticket-request-failed: .*\n\S+Z Reconnect 1 in 10 ms\n/);
  });
});

describe('the text of a failure', () => {
  it.each(serviceMeanings.map((row) => [row.code, row] as const))('%s names no option of the library', (_, row) => {
    const status = typeof row.status === 'number' ? row.status : row.status && 599;
    const closeCode = typeof row.closeCode === 'number' ? row.closeCode : row.closeCode && 4999;
    const isObserved = status !== undefined || closeCode !== undefined;
    const failure = createTradeFeedError({
      stage: row.stage ?? 'ticket',
      ...(isObserved ? { status, closeCode, reason: row.reason } : { code: row.code }),
    });
    expect(failureWords(failure)).not.toMatch(/`\w*[A-Z]|option/);
    expect(failureWords(failure)).toMatch(/^[A-Z].*\.$/);
  });

  it('names the previous failure once, and ends with the advice', () => {
    const revoked = createTradeFeedError({ stage: 'stream', closeCode: 4003, reason: 'access revoked' });
    const forbidden = createTradeFeedError({ stage: 'ticket', status: 403 });
    expect(failureWords(copyFailure(forbidden, { previous: revoked }))).toContain(
      'Before that: Access was revoked (close code 4003, "access revoked").',
    );
    expect(failureWords(copyFailure(forbidden, { previous: forbidden }))).not.toContain('Before that');
    const facts = { stage: 'ticket', code: 'retries-exhausted', detail: 'maxAttempts is 2', cause: forbidden } as const;
    expect(failureWords(createTradeFeedError(facts))).toBe(
      'The feed gave up after 2 reconnects (--retries) without a stable connection. The last failure was not-entitled: ' +
        "The account is inactive or isn't entitled to the stream (HTTP 403). Restore access, or use a key of an account that has it. " +
        'To allow more reconnects, raise --retries.',
    );
  });

  it('shows no control characters from a close reason', () => {
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 4999, reason: '\x1b[31mred' });
    expect(whatHappened(failure)).toBe('The connection was closed (close code 4999, "␛[31mred").');
    expect(whatHappened(new TradeFeedError({ ...failure, summary: 'Its own words.' }))).toBe('Its own words.');
  });
});
