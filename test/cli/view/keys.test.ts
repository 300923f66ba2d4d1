import { describe, expect, it } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { withKeys } from '../../../src/cli/view/keys.js';
import { waitFor } from '../../support/wait-for.js';
import { fakeContext } from '../support/fake-context.js';

describe('withKeys', () => {
  it.each(['q', 'Q', '\x03'])(
    'reads the key %j of a terminal as an interrupt, and restores the terminal',
    async (key) => {
      const modes: boolean[] = [];
      const stdin = Object.assign(new PassThrough(), {
        isTTY: true,
        setRawMode: (isRaw: boolean) => modes.push(isRaw),
      });
      const interrupts: string[] = [];
      const subscription = withKeys({ ...fakeContext(), stdin }).interrupt$.subscribe((name) => interrupts.push(name));
      stdin.write('x');
      stdin.write(key);
      await waitFor(() => interrupts.length > 0);
      expect(modes).toEqual([true]);
      subscription.unsubscribe();
      expect(interrupts).toEqual(['SIGINT']);
      expect(modes).toEqual([true, false]);
      expect(stdin.isPaused()).toBe(true);
    },
  );

  it('is interrupted when the terminal is gone', () => {
    const stdin = Object.assign(new PassThrough({ autoDestroy: false }), {
      isTTY: true,
      setRawMode: (isRaw: boolean) => isRaw || stdin.emit('error', new Error('setRawMode EIO')),
    });
    const interrupts: string[] = [];
    const subscription = withKeys({ ...fakeContext(), stdin }).interrupt$.subscribe((name) => interrupts.push(name));
    stdin.emit('error', new Error('read EIO'));
    subscription.unsubscribe();
    expect(interrupts).toEqual(['SIGHUP']);
  });

  it('reads no keys if stdin is not a terminal, and keeps the signals', () => {
    const context = fakeContext();
    const interrupts: string[] = [];
    withKeys(context).interrupt$.subscribe((name) => interrupts.push(name));
    context.stdin.write('q');
    context.interrupt$.next('SIGTERM');
    expect(interrupts).toEqual(['SIGTERM']);
    expect(context.stdin.listenerCount('data')).toBe(0);
  });
});
