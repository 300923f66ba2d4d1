import { describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { endingOf, endings$, exitCodeOfEnding } from '../../../src/cli/follow/ending.js';
import type { Ending } from '../../../src/cli/follow/event.js';
import { fakeContext } from '../support/fake-context.js';

const broken = (code: string) => Object.assign(new Error(`write ${code}`), { code });

describe('endings$', () => {
  it('emits a signal', async () => {
    const context = fakeContext();
    const ending = firstValueFrom(endings$(context));
    context.interrupt$.next('SIGTERM');
    expect(await ending).toStrictEqual({ kind: 'interrupted', signal: 'SIGTERM' });
  });

  it('reports that the reader of stdout has exited, immediately or later', async () => {
    const context = fakeContext();
    const ending = firstValueFrom(endings$(context));
    context.stdout.destroy(broken('EPIPE'));
    expect(await ending).toStrictEqual({ kind: 'output-closed' });
    expect(await firstValueFrom(endings$(context))).toStrictEqual({ kind: 'output-closed' });
    expect(endingOf(context.stdout)).toStrictEqual({ kind: 'output-closed' });
    expect(endingOf(context.stderr)).toBeUndefined();
  });

  it('reports another failure of stdout', async () => {
    const context = fakeContext();
    const ending = firstValueFrom(endings$(context));
    context.stdout.destroy(broken('ENOSPC'));
    expect(await ending).toMatchObject({
      kind: 'failed',
      error: { exitCode: 8, message: 'Cannot write to stdout: no space is left.' },
    });
  });
});

describe('the exit code of an ending', () => {
  const rows: readonly (readonly [
    ending: Exclude<Ending, { kind: 'failed' }>,
    bounds: { count?: number; durationMs?: number },
    connections: number,
    code: number,
  ])[] = [
    [{ kind: 'count-reached' }, { count: 1 }, 1, 0],
    [{ kind: 'output-closed' }, { count: 5 }, 1, 0],
    [{ kind: 'time-up' }, { durationMs: 1 }, 1, 0],
    [{ kind: 'time-up' }, { durationMs: 1 }, 0, 124],
    [{ kind: 'time-up' }, { durationMs: 1, count: 1 }, 1, 124],
    [{ kind: 'interrupted', signal: 'SIGINT' }, {}, 1, 0],
    [{ kind: 'interrupted', signal: 'SIGINT' }, {}, 0, 0],
    [{ kind: 'interrupted', signal: 'SIGINT' }, { count: 5 }, 1, 130],
    [{ kind: 'interrupted', signal: 'SIGTERM' }, { durationMs: 5 }, 1, 143],
    [{ kind: 'interrupted', signal: 'SIGHUP' }, { durationMs: 5 }, 1, 129],
  ];
  it.each(rows)('%j with %j after %d connections is %d', (ending, bounds, connections, code) => {
    expect(exitCodeOfEnding(ending, bounds, { connections })).toBe(code);
  });
});
