import { describe, expect, it } from '@jest/globals';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { RelayRun } from '../../src/relay/relay-run.js';
import { frame } from './support.js';

const bounds = { capacity: 10, capacityBytes: 1e6, maxReplayBytes: 1e6 };

describe('RelayRun', () => {
  it('has a unique epoch', () => {
    const epochs = Array.from({ length: 50 }, () => new RelayRun(bounds, () => 5).epoch);
    expect(new Set(epochs).size).toBe(50);
    for (const epoch of epochs) expect(epoch).toMatch(/^[\w-]{8}$/);
  });

  it('returns the same message for the same batch', () => {
    const run = new RelayRun(bounds, () => 5);
    run.append(frame('a', 7));
    const batch = run.log.read(run.log.oldest)!;
    expect(run.messageOf(batch)).toBe(run.messageOf(batch));
    expect(run.messageOf(batch)).toEqual({
      id: `${run.epoch}.1.1.7`,
      data: `${batch.lines}\n{"type":"watermark","at":7}`,
    });
    expect(run.end).toBeUndefined();
  });

  it('writes `stopped` as `disconnected`, with the same time and failure, and a watermark after it', () => {
    const run = new RelayRun(bounds, () => 50);
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
    for (const event of [frame('a', 7), { type: 'stopped', at: 8, failure } as const]) run.append(event);
    const { data } = run.messageOf(run.log.read(run.log.oldest)!);
    const lines = data.split('\n').map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject([
      { type: 'frame' },
      { type: 'disconnected', at: 8, failure: JSON.parse(JSON.stringify(failure.toPublic())) as object },
      { type: 'watermark' },
    ]);
    expect(run.log.newest.snapshot).toEqual([{ type: 'disconnected', at: 8, failure: failure.toPublic() }]);
  });

  it('ends as the source ended', () => {
    const run = new RelayRun(bounds, () => 5);
    run.complete();
    expect(run.end).toEqual({ type: 'complete', data: '{}' });
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
    run.stop(failure);
    expect(run.end).toEqual({ type: 'connect-again', data: JSON.stringify(failure.toPublic()) });
  });

  it.each([new Error('secret'), 'secret', { message: 'secret', code: 'secret' }, undefined, null])(
    'does not send the text of an error that is not a TradeFeedError: %p',
    (error) => {
      const run = new RelayRun(bounds, () => 5);
      run.stop(error);
      expect(run.end?.data).not.toContain('secret');
      expect(JSON.parse(run.end!.data)).toMatchObject({
        code: 'relay-source-failed',
        stage: 'stream',
        verdict: 'stop',
      });
    },
  );

  it('does not send the cause of a failure', () => {
    const run = new RelayRun(bounds, () => 5);
    run.stop(
      createTradeFeedError({ stage: 'ticket', code: 'ticket-endpoint-unreachable', cause: new Error('secret') }),
    );
    expect(run.end?.data).not.toContain('secret');
    expect(run.end?.data).not.toContain('stack');
  });
});
