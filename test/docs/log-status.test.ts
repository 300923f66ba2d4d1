import { expect, it } from '@jest/globals';
import { statusText } from '../../src/cli/commands/log.js';
import { appendDefaults } from '../../src/log/append.js';
import { inspectLog } from '../../src/log/inspect.js';
import { LogWriter } from '../../src/log/writer.js';
import { Frame } from '../../src/protocol/frame.js';
import { read } from './fences.js';
import { siteLibrary } from './site.js';

const { withLogStatus } = await siteLibrary('log-status.mjs');
const page = 'docs/log.md';

it('the guide shows what `log status` prints: run scripts/site/update.mjs log-status', async () => {
  const source = { LogWriter, appendDefaults, Frame, inspectLog, statusText };
  expect(read(page)).toBe(await withLogStatus(read(page), source));
});
