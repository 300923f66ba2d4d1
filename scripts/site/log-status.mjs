// The output of `log status` in docs/log.md, from a log that is written here at a fixed time.
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withPart } from './failure-text.mjs';

const begin = Date.parse('2026-01-01T09:00:00Z');
const frameCount = 20_000;
const committed = 19_500;

/** Returns the page with what the command prints. */
export const withLogStatus = async (page, source) => {
  const mark = '<!-- not checked: a test compares it with the command -->';
  return withPart(page, 'log-status', [mark, '', '```text', ...(await statusLines(source)), '```'].join('\n'));
};

const statusLines = async ({ LogWriter, appendDefaults, Frame, inspectLog, statusText }) => {
  const folder = fs.mkdtempSync(join(tmpdir(), 'log-status-'));
  try {
    let now = begin;
    const nothing = () => undefined;
    const machine = {
      ...{
        disk: fs,
        now: () => now,
        monotonic: () => now,
        boot: () => 'b'.repeat(36),
        newId: () => 'a1b2c3d4e5f6',
        lockFile: () => true,
      },
      ...{ every: () => nothing, soon: (call) => call(), atExit: () => nothing, warn: nothing, gzip: nothing },
    };
    const settings = { ...appendDefaults, segmentBytes: 2_000_000, maxWaitingBytes: 1 };
    const writer = new LogWriter(folder, settings, machine, (error) => {
      throw error;
    });
    writer.add({ type: 'opened', at: begin, feed: 'market', connection: 1 });
    for (let n = 0; n < frameCount; n += 1) {
      now = begin + 5 * n;
      writer.add(new Frame('market', Buffer.from(JSON.stringify({ id: n, pad: 'x'.repeat(120) })), false, now, 1));
    }
    writer.end();
    const position = {
      offset: committed,
      frames: committed - 1,
      holes: 0,
      at: begin + 5 * committed,
      log: 'a1b2c3d4e5f6',
    };
    fs.mkdirSync(join(folder, 'cursors'));
    fs.writeFileSync(join(folder, 'cursors/alerts.json'), JSON.stringify(position));
    return statusText({ ...(await inspectLog(folder)), path: 'market' }, now + 3_000);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
};
