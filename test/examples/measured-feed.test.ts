import { expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { waitFor } from '../support/wait-for.js';
import { root } from './run-example.js';

/** The limit of a test that runs programs, in ms: longer than the limit of its waits. */
const limitMs = 120_000;

it(
  'examples/observability/measured-feed.mjs offers the metrics of its feed, and ends with Ctrl-C',
  async () => {
    const child = spawn(process.execPath, ['examples/observability/measured-feed.mjs'], {
      cwd: root,
      env: { PATH: process.env['PATH'], METRICS_PORT: '0' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const closed = once(child, 'close');
    const limit = { limitMs: 100_000 };
    const address = await waitFor(() => /^metrics on (http:\S+)$/m.exec(stdout)?.[1], limit);
    const scrape = async () => (await fetch(address)).text();
    await waitFor(async () => /^messaging_client_consumed_messages_total\{.+\} [1-9]/m.test(await scrape()), limit);
    const isLive = /^trade_feed_connection_state\{.+trade_feed_state="live".+\} 1$/m;
    await waitFor(async () => isLive.test(await scrape()), limit);
    child.kill('SIGINT');
    expect(await closed).toEqual([0, null]);
    expect(stdout).toMatch(/^metrics on \S+\n$/);
    expect(stderr).toMatch(/^Connected to market \(connection 1\)\n/m);
  },
  limitMs,
);
