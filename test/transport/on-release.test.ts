import { expect, it } from '@jest/globals';
import { firstValueFrom, take } from 'rxjs';
import { tradeFeed$ } from '../../src/index.js';
import { onRelease, resolveOptions, type Settings } from '../../src/options.js';
import { optionsFor } from '../support/feed.js';
import { accept, refuse, startWire, text, type Wire } from '../support/wire.js';

const released: Promise<void>[] = [];
const told = (wire: Wire): Settings => ({
  ...resolveOptions(optionsFor(wire)),
  [onRelease]: (gone) => released.push(gone),
});

it('tells of a connection that is let go, and when its socket is closed, closing handshake and all', async () => {
  released.length = 0;
  await using wire = await startWire({ handshake: [accept(text('a'))] });
  await firstValueFrom(tradeFeed$('market', told(wire)).pipe(take(1)));
  expect(released).toHaveLength(1);
  expect(wire.open.size).toBeGreaterThan(0);
  await released[0];
  expect(wire.opcodes).toEqual([8]);
});

it('tells of nothing where there was no connection', async () => {
  released.length = 0;
  await using wire = await startWire({ ticket: [refuse(403)] });
  await expect(firstValueFrom(tradeFeed$('market', told(wire)))).rejects.toMatchObject({ code: 'not-entitled' });
  expect(released).toEqual([]);
});
