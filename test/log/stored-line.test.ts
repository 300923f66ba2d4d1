import { expect, it } from '@jest/globals';
import type { Stored } from '../../src/log/line-store.js';
import { LineWriter } from '../../src/log/line-writer.js';
import { type Refused, StoredLine } from '../../src/log/stored-line.js';
import { type Head, startOf } from '../../src/protocol/place.js';

/** A store whose answers a test decides. */
class TestLine extends StoredLine<{ readonly head: Head | undefined }, number> {
  isAway = false;
  refusal: Refused['refused'] | undefined;
  readonly stored: number[] = [];
  protected readonly isConnected = true;

  protected newest(): Promise<{ readonly head: Head | undefined }> {
    return this.isAway ? Promise.reject(new Error('away')) : Promise.resolve({ head: undefined });
  }
  protected follow(): void {
    this.refusal = undefined;
  }
  protected store({ offset }: Head): Promise<Refused | undefined> {
    if (this.refusal) return Promise.resolve({ refused: this.refusal, error: new Error(this.refusal) });
    this.stored.push(offset);
    return Promise.resolve(undefined);
  }
  protected publish(): undefined {
    return undefined;
  }
  protected find(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
  // eslint-disable-next-line @typescript-eslint/require-await -- other stores have to wait
  protected async *pages(): AsyncIterable<never> {
    yield* [];
  }
  protected bytes(): Promise<number> {
    return Promise.resolve(0);
  }
  protected headOf(): undefined {
    return undefined;
  }
  last(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
  exists(): Promise<boolean> {
    return Promise.resolve(true);
  }
}

const message = (gen: number, offset: number): Head => ({
  ...startOf('a', offset, offset),
  ...{ gen, after: 0, began: 0, count: 1 },
});

it('tells the writer of a new generation that the store still refuses what an earlier one was refused', async () => {
  const line = new TestLine();
  line.refusal = 'fenced';
  line.append(message(1, 0), Buffer.of(1));
  await Promise.resolve();
  line.isAway = true;
  await expect(line.end()).rejects.toThrow('away');
  line.isAway = false;
  const writer = new LineWriter(line, { refused: () => undefined, fenced: () => undefined, maxBytes: () => Infinity });
  line.stored$.subscribe((stored: Stored) => writer.stored(stored));
  writer.append(message(2, 0), Buffer.of(1));
  await new Promise(setImmediate);
  expect(line.stored).toEqual([0]);
  writer.close();
});
