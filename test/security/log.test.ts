import { describe, expect, it } from '@jest/globals';
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tradeFeedEvents$ } from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { accept, close, startWire, text } from '../support/wire.js';

const folder = tempFolder();

/** Logs a feed that gets closed with its secrets as the reason, and then stops. Returns the files by name. */
const logged = async (umask: number) => {
  const path = mkdtempSync(folder.path('log-'));
  writeFileSync(join(path, 'of-another-program'), 'mine');
  const before = process.umask(umask);
  await using wire = await startWire({
    handshake: [
      accept(text('a'), close(1001, `${plantedKey} planted-ticket-1`)),
      accept(text('b'), close(4001, plantedKey)),
    ],
  });
  try {
    await tradeFeedEvents$('market', optionsFor(wire))
      .pipe(feedLog(path).append())
      .forEach(() => undefined)
      .catch(() => undefined);
    return new Map(
      readdirSync(path).map((name) => {
        const file = join(path, name);
        return [name, { content: readFileSync(file, 'utf8'), mode: statSync(file).mode & 0o777 }] as const;
      }),
    );
  } finally {
    process.umask(before);
  }
};

describe('a log on disk', () => {
  it('contains frames and events, but no secret', async () => {
    const files = [...(await logged(0o022))];
    const lines =
      files
        .find(([name]) => name.endsWith('.ndjson'))?.[1]
        .content.trimEnd()
        .split('\n') ?? [];
    const types = lines.map((line) => (JSON.parse(line) as { type: string }).type);
    expect(types).toEqual(expect.arrayContaining(['segment', 'opened', 'frame', 'disconnected', 'gap', 'stopped']));
    for (const [, { content }] of files) expect(content).not.toMatch(new RegExp(`${plantedKey}|planted-ticket`));
  });

  it.each([
    [0o077, 0o600],
    [0o027, 0o640],
  ])('gets its permissions from the umask of the process: umask %i', async (umask, mode) => {
    const files = await logged(umask);
    files.delete('of-another-program');
    expect([...files.values()].map((file) => file.mode)).toEqual([...files.keys()].map(() => mode));
  });

  it('does not touch files of other programs in its folder', async () => {
    expect((await logged(0o022)).get('of-another-program')?.content).toBe('mine');
  });
});
