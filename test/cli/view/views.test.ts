import { describe, expect, it } from '@jest/globals';
import { tickMs } from '../../../src/cli/follow/follow.js';
import { emptyTally } from '../../../src/cli/follow/tally.js';
import { emptyReplayTally } from '../../../src/cli/replay/replay-tally.js';
import { replayView } from '../../../src/cli/replay/replay-view.js';
import { eventLogView, progressEveryMs, progressView } from '../../../src/cli/view/views.js';
import { ending, opening, start } from '../support/events.js';
import { fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';

const ticks = progressEveryMs / tickMs;

describe('the log of events', () => {
  it('names doctor once, before the third reconnect of a feed that never had a connection', () => {
    const logOf = (connections: number): string => {
      const output = new FakeOutput();
      const tally = { ...emptyTally('market', start), connections };
      for (const attempt of [1, 2, 3, 4])
        for (const event of ending(attempt * 1_000, { stage: 'ticket', status: 500 }, 10, attempt))
          eventLogView(output).show({ event, tally });
      return output.text;
    };
    expect(logOf(1)).not.toContain('doctor');
    expect(logOf(0).match(/doctor/g)).toHaveLength(1);
    expect(logOf(0)).toMatch(
      /\(attempt 3\).*\n.*Z no connection so far; to find the cause, run rx-trade-feed doctor\n/,
    );
  });
});

describe('progress in a log', () => {
  it('of a recording is written at intervals, and each event immediately', () => {
    const output = new FakeOutput();
    const view = progressView(output, () => '9 B in f');
    const tally = emptyTally('market', start);
    for (let n = 0; n < ticks - 1; n += 1) view.show({ event: { type: 'tick', at: start }, tally });
    expect(output.text).toBe('');
    for (const event of opening(0, 1).slice(0, 1)) view.show({ event, tally });
    expect(output.text).toBe('2026-01-01T00:00:00.000Z requesting a ticket for market\n');
    for (let n = 0; n < ticks; n += 1) view.show({ event: { type: 'tick', at: start }, tally });
    view.close();
    expect(output.text.split('\n').slice(1)).toStrictEqual([
      expect.stringMatching(/Z ○ requesting a ticket for market .* · 0 frames · no gaps · 9 B in f$/),
      '',
    ]);
  });

  it('of a replay is written at intervals, unless it is quiet', () => {
    const context = fakeContext();
    const [view, quiet] = [replayView({ status: true }, context), replayView({ status: true, quiet: true }, context)];
    for (let n = 0; n < ticks - 1; n += 1) view.show(emptyReplayTally(0));
    for (let n = 0; n < ticks; n += 1) quiet.show(emptyReplayTally(0));
    expect(context.stderr.text).toBe('');
    view.show(emptyReplayTally(0));
    for (const each of [view, quiet]) each.close();
    expect(context.stderr.text).toMatch(/^\S+Z 0% · 0 frames · no gaps\n$/);
  });
});
