import { describe, expect, it } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { recordTo, tradeFeedEvents$ } from '../../src/index.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { accept, close, startWire, text } from '../support/wire.js';

/** Records a feed that is closed with its secrets as the reason, and then stops. Returns the file. */
const recorded = async (umask: number) => {
  const folder = mkdtempSync(join(tmpdir(), 'security-'));
  const path = join(folder, 'feed.jsonl');
  const before = process.umask(umask);
  await using wire = await startWire({
    handshake: [
      accept(text('a'), close(1001, `${plantedKey} planted-ticket-1`)),
      accept(text('b'), close(4001, plantedKey)),
    ],
  });
  try {
    await tradeFeedEvents$('market', optionsFor(wire))
      .pipe(recordTo(path))
      .forEach(() => undefined)
      .catch(() => undefined);
    return { content: readFileSync(path, 'utf8'), mode: statSync(path).mode & 0o777 };
  } finally {
    process.umask(before);
    rmSync(folder, { recursive: true });
  }
};

describe('a recording on disk', () => {
  it('contains frames and gaps, and no secret', async () => {
    const { content } = await recorded(0o022);
    const lines = content.trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { type: string }).type)).toEqual(['frame', 'gap', 'frame']);
    expect(content).not.toContain(plantedKey);
    expect(content).not.toContain('planted-ticket');
  });

  it.each([
    [0o077, 0o600],
    [0o027, 0o640],
  ])('has the permissions of the umask of the process: umask %i', async (umask, mode) => {
    expect((await recorded(umask)).mode).toBe(mode);
  });
});
