import { describe, expect, it } from '@jest/globals';
import { connectionStatus, feedStats } from '../../../src/index.js';
import { createRelay } from '../../../src/relay/index.js';
import { readStatus } from '../../../src/cli/top/read-status.js';
import { firstValueFrom, lastValueFrom, NEVER, of } from 'rxjs';
import { ending, expired, opening } from '../support/events.js';

/** Returns a value as an app would send it. */
const sent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe('readStatus', () => {
  it('reads the status of a relay, and the output of connectionStatus and feedStats', async () => {
    const events$ = of(...opening(0, 1), ...ending(1_000, expired, 500));
    const connection = await lastValueFrom(events$.pipe(connectionStatus()));
    const stats = await firstValueFrom(events$.pipe(feedStats()));
    const relay = createRelay(NEVER);
    const client = relay.messages$().subscribe();
    const status = readStatus(sent({ ...relay.status(), connection, stats, lastFrameAt: 5 }));
    client.unsubscribe();
    relay.close();
    expect(status).toEqual({
      state: 'reconnecting',
      problem: 'access-expired',
      stats: expect.objectContaining({ framesPerSecond: 0, gaps: 1, reconnects: { 'access-expired': 1 } }),
      lastFrameAt: 5,
      clients: { count: 1, authorizing: 0, sent: 0, missed: 0 },
      cluster: undefined,
    });
  });

  it('adds up the clients, and reads a replica', () => {
    const clients = [
      { client: 1, sent: 10, missed: 1 },
      { client: 2, sent: 20, missed: 2 },
    ];
    expect(
      readStatus({ clients, authorizing: 4, cluster: { role: 'owning', replica: 'a', owner: 'a' } }),
    ).toMatchObject({
      state: 'unknown',
      clients: { count: 2, authorizing: 4, sent: 30, missed: 3 },
      cluster: { role: 'owning', replica: 'a', owner: 'a' },
    });
  });

  it('ignores a part that is not valid, and is undefined if there is none', () => {
    expect(readStatus({ connection: { state: 'live' }, stats: { gaps: 'many' }, clients: [{}], cluster: 5 })).toEqual({
      state: 'live',
    });
    for (const body of [null, 'text', [], {}, { status: 'ok' }, { connection: { state: 'odd' } }])
      expect(readStatus(body)).toBeUndefined();
  });
});
