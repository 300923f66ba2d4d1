import { afterEach, expect, it, jest } from '@jest/globals';
import { endPrograms, shellCommand } from '../cli/support/program.js';
import { waitFor } from '../support/wait-for.js';

// A program takes long to start on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(120_000);
afterEach(endPrograms);

it('examples/observability/measured-feed.mjs offers the metrics of its feed, and ends with Ctrl-C', async () => {
  const command = `exec ${process.execPath} examples/observability/measured-feed.mjs`;
  const { child, exit, stdout, stderr, untilStdout } = shellCommand(command, { METRICS_PORT: '0' });
  const [, address = ''] = await untilStdout(/^metrics on (http:\S+)$/m);
  const hasScraped = (pattern: RegExp) =>
    waitFor(async () => pattern.test(await (await fetch(address)).text()), { limitMs: 100_000 });
  await hasScraped(/^messaging_client_consumed_messages_total\{.+\} [1-9]/m);
  await hasScraped(/^trade_feed_connection_state\{.+trade_feed_state="live".+\} 1$/m);
  child.kill('SIGINT');
  expect(await exit).toBe(0);
  expect(stdout()).toMatch(/^metrics on \S+\n$/);
  expect(stderr()).toMatch(/^Connected to market \(connection 1\)\n/m);
});
