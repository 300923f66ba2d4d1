import { describe, expect, it } from '@jest/globals';
import { asyncScheduler, VirtualTimeScheduler } from 'rxjs';
import { boundDefaults, type BoundOptions, boundRules, type Bounds } from '../../../src/operators/bounded/bounds.js';
import { positiveCount } from '../../../src/protocol/rules.js';
import { bytesOf } from '../../../src/operators/items/item.js';
import { tablesUnder } from '../../docs/tables.js';

const never = [undefined, null, '', '1', NaN, 0, -1, true, {}, []];

describe('boundDefaults', () => {
  it('have a value for each option and are frozen', () => {
    expect(boundDefaults).toStrictEqual({
      capacity: 10_000,
      capacityBytes: 67_108_864,
      overflow: 'drop-oldest',
      bytesOf,
      onDrop: undefined,
      scheduler: asyncScheduler,
    });
    expect(Object.isFrozen(boundDefaults)).toBe(true);
  });

  it('pass the rules', () => {
    expect(Object.keys(boundDefaults)).toEqual(Object.keys(boundRules));
    const { onDrop: _, ...defaults } = boundDefaults;
    for (const [name, value] of Object.entries(defaults)) {
      const { is } = boundRules[name as keyof BoundOptions];
      expect([name, is(value)]).toEqual([name, true]);
    }
  });
});

describe('boundRules', () => {
  const cases: Readonly<Record<keyof BoundOptions, readonly [good: readonly unknown[], bad: readonly unknown[]]>> = {
    capacity: [
      [1, 2 ** 31],
      [...never, 1.5, 2 ** 53, Infinity, 1n],
    ],
    capacityBytes: [
      [1, 0.5, Infinity],
      [...never, 1n],
    ],
    overflow: [
      ['drop-oldest', 'drop-newest', 'error'],
      [...never, 'drop', 'Error', ['error']],
    ],
    bytesOf: [[() => 1, bytesOf], never],
    onDrop: [[() => undefined], never],
    scheduler: [
      [asyncScheduler, new VirtualTimeScheduler()],
      [...never, { now: () => 1 }, () => 1],
    ],
  };

  it.each(Object.entries(cases))('accept only valid values of %s', (name, [good, bad]) => {
    const { is } = boundRules[name as keyof BoundOptions];
    expect([good.filter((value) => !is(value)), bad.filter(is)]).toEqual([[], []]);
  });

  it('describe the accepted values', () => {
    expect(Object.entries(boundRules).map(([name, { allowed }]) => `${name}: ${allowed}`)).toEqual([
      'capacity: a whole number, 1 or more',
      'capacityBytes: a number of bytes above 0',
      "overflow: 'drop-oldest' or 'drop-newest' or 'error'",
      'bytesOf: a function',
      'onDrop: a function',
      'scheduler: an RxJS scheduler',
    ]);
    expect(boundRules.capacity).toBe(positiveCount);
  });
});

describe('the bounds of docs/slow-consumers.md', () => {
  const [options = []] = tablesUnder('docs/slow-consumers.md', 'The bounds');

  // 10 000 and 'drop-oldest', in the format of a document.
  const written = (value: Bounds<unknown>[keyof BoundOptions]): string => {
    if (typeof value === 'number') return String(value).replace(/\B(?=(\d{3})+$)/g, ' ');
    if (typeof value === 'string') return `'${value}'`;
    return value === bytesOf ? 'see right' : value === asyncScheduler ? 'asyncScheduler' : '–';
  };

  it('are all options, each with its default and a description', () => {
    const shown = options.map((row) => [row['option'], row['default']]);
    const inLibrary = Object.keys(boundRules).map((name) => [name, written(boundDefaults[name as keyof BoundOptions])]);
    expect(shown).toEqual(inLibrary);
    for (const row of options) expect(row['meaning']).toMatch(/\S/);
  });

  it('have the same value in MiB and in bytes', () => {
    const row = options.find(({ option }) => option === 'capacityBytes');
    expect(row?.['meaning']).toContain(`(${boundDefaults.capacityBytes / 1024 ** 2} MiB)`);
  });
});
