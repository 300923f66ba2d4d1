import { afterAll, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { feedLog, inspectLog } from 'rx-trade-feed/log';
import { from, lastValueFrom } from 'rxjs';
import { statusText } from '../../src/cli/commands/log.js';
import { Frame } from '../../src/protocol/frame.js';
import { read } from './fences.js';

const folder = mkdtempSync(join(tmpdir(), 'log-status-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('the guide shows what `log status` prints, whatever the id of the log', async () => {
  const begin = Date.parse('2026-01-01T09:00:00Z');
  const payload = (n: number): Buffer => Buffer.from(JSON.stringify({ id: n, pad: 'x'.repeat(120) }));
  const frames = Array.from({ length: 20_000 }, (_, n) => new Frame('market', payload(n), false, begin + 5 * n, 1));
  const opened = { type: 'opened' as const, at: begin, feed: 'market' as const, connection: 1, completeFrom: begin };
  await lastValueFrom(from([opened, ...frames]).pipe(feedLog(folder).append({ segmentBytes: 2_000_000 })));
  const { log: id } = await inspectLog(folder);
  const cursor = { offset: 19_500, frames: 19_499, holes: 0, at: begin + 5 * 19_500, log: id };
  mkdirSync(join(folder, 'cursors'));
  writeFileSync(join(folder, 'cursors/alerts.json'), JSON.stringify(cursor));

  const status = await inspectLog(folder);
  const now = (status.writer?.writtenAt ?? 0) + 3_000;
  const text = statusText({ ...status, path: 'market', log: 'a1b2c3d4e5f6' }, now).join('\n');
  expect(read('docs/log.md')).toContain(`\n\`\`\`text\n${text}\n\`\`\`\n`);
});
