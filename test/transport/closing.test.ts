import { expect, it } from '@jest/globals';
import { firstValueFrom, take } from 'rxjs';
import { frames } from '../../src/index.js';
import { feedEvents$ } from '../../src/trade-feed.js';
import { optionsFor } from '../support/feed.js';
import { accept, refuse, startWire, text, type Wire } from '../support/wire.js';

/** Receives one frame, and returns the promises of the connections that started to close. */
const closingOf = async (wire: Wire): Promise<{ readonly closing: Promise<void>[]; readonly failure?: unknown }> => {
  const closing: Promise<void>[] = [];
  const owner = { user: { where: 'a test' }, onClosing: (closed: Promise<void>) => void closing.push(closed) };
  try {
    await firstValueFrom(feedEvents$('market', optionsFor(wire), owner).pipe(frames(), take(1)));
    return { closing };
  } catch (failure) {
    return { closing, failure };
  }
};

it('calls onClosing with a promise that resolves after the closing handshake', async () => {
  await using wire = await startWire({ handshake: [accept(text('a'))] });
  const { closing } = await closingOf(wire);
  expect(closing).toHaveLength(1);
  expect(wire.open.size).toBeGreaterThan(0);
  await closing[0];
  expect(wire.opcodes).toEqual([8]);
});

it('does not call onClosing if no connection was opened', async () => {
  await using wire = await startWire({ ticket: [refuse(403)] });
  const { closing, failure } = await closingOf(wire);
  expect(failure).toMatchObject({ code: 'not-entitled' });
  expect(closing).toEqual([]);
});
