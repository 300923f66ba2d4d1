import { TradeFeedError } from 'rx-trade-feed';
import type { Seen } from '../../test/support/ten-rules/seen.js';
import { exactly } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';

/** The counts of all episodes. */
export interface Tally {
  subscriptions: number;
  frames: number;
  reconnects: number;
  gaps: number;
  connections: number;
  tickets: number;
  readonly failures: Map<string, number>;
}

export const emptyTally = (): Tally => ({
  ...{ subscriptions: 0, frames: 0, reconnects: 0, gaps: 0, connections: 0, tickets: 0 },
  failures: new Map(),
});

export const addTo = (tally: Tally, logs: ReadonlyMap<number, readonly Seen[]>): void => {
  for (const log of logs.values()) {
    tally.subscriptions += 1;
    for (const seen of log) {
      if (seen.what === 'frame') tally.frames += 1;
      if (seen.what === 'ticket-request') tally.tickets += 1;
      if (seen.what === 'errored' && seen.error instanceof TradeFeedError) count(tally, seen.error.code);
      if (seen.what !== 'event') continue;
      if (seen.event.type === 'opened') tally.connections += 1;
      if (seen.event.type === 'gap') tally.gaps += 1;
      if (seen.event.type === 'reconnecting') tally.reconnects += 1;
      if (seen.event.type === 'disconnected') count(tally, seen.event.failure.code);
    }
  }
};

const count = ({ failures }: Tally, code: string): void => void failures.set(code, (failures.get(code) ?? 0) + 1);

interface Run {
  readonly seed: number;
  readonly minutes: number;
  readonly episodes: number;
  readonly failed: number;
}

/** Writes the result and its section of docs/reliability/faults.md. */
export const reportChaos = async (tally: Tally, { seed, minutes, episodes, failed }: Run): Promise<void> => {
  const { subscriptions, frames, reconnects, gaps, connections, tickets, failures } = tally;
  await report({
    name: 'chaos',
    command: `npm run reliability -- chaos --seed ${seed} --minutes ${minutes} --report`,
    goals: [exactly('violations of the ten rules', failed, 0)],
    tables: [
      {
        title: 'What happened',
        columns: ['episodes', 'subscriptions', 'ticket requests', 'connections', 'frames', 'reconnects', 'gaps'],
        rows: [[episodes, subscriptions, tickets, connections, frames, reconnects, gaps]],
      },
      {
        title: 'Failures by code',
        columns: ['code', 'times'],
        rows: [...failures].sort(([, a], [, b]) => b - a),
      },
    ],
  });
};
