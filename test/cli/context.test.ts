import { describe, expect, it } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { hasColors, interrupts, isTerminal, processContext } from '../../src/cli/context.js';
import { FakeOutput } from './support/fake-output.js';

describe('processContext', () => {
  it('emits each signal while there is a subscriber, and has no listeners otherwise', () => {
    const fake = Object.assign(new EventEmitter(), { env: { A: 'b' }, stdin: 1, stdout: 2, stderr: 3 });
    const { interrupt$, ...context } = processContext(fake as unknown as NodeJS.Process);
    expect(context).toStrictEqual({ env: { A: 'b' }, stdin: 1, stdout: 2, stderr: 3 });
    const signals: string[] = [];
    const subscription = interrupt$.subscribe((signal) => signals.push(signal));
    for (const signal of Object.keys(interrupts)) fake.emit(signal, signal, 2);
    expect(signals).toStrictEqual(['SIGINT', 'SIGTERM', 'SIGHUP']);
    subscription.unsubscribe();
    expect(fake.eventNames()).toStrictEqual([]);
  });
});

describe('a terminal', () => {
  it('supports control sequences unless it is dumb, and colours unless NO_COLOR is set', () => {
    const terminal = new FakeOutput({ columns: 80, rows: 24 });
    expect(isTerminal(terminal, { env: {} })).toBe(true);
    expect(isTerminal(terminal, { env: { TERM: 'dumb' } })).toBe(false);
    expect(isTerminal(new FakeOutput(), { env: {} })).toBe(false);
    expect(hasColors(terminal, { env: { NO_COLOR: '' } })).toBe(true);
    expect(hasColors(terminal, { env: { NO_COLOR: '1' } })).toBe(false);
    expect(hasColors(terminal, { env: { TERM: 'dumb' } })).toBe(false);
  });
});
