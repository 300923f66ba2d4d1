import { describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { throwError } from 'rxjs';
import { run } from '../../src/cli/run.js';
import { fakeContext } from './support/fake-context.js';

describe('run', () => {
  it.each([['--help'], ['help', 'listen'], ['serve', '--help']])('shows the help of `%s`', async (...args) => {
    const context = fakeContext();
    expect(await run(args, context)).toBe(0);
    expect(context.stdout.text).toMatch(/^Usage: rx-trade-feed /m);
    expect(context.stderr.text).toBe('');
  });

  it('shows the commands in the help of the program', async () => {
    const context = fakeContext();
    expect(await run(['--help'], context)).toBe(0);
    expect(context.stdout.text).toContain('Usage: rx-trade-feed [options] [command]');
  });

  it('refuses a key as an argument, and does not repeat it', async () => {
    const context = fakeContext({ env: { TRADE_FEED_API_KEY: 'planted-secret' } });
    expect(await run(['listen', '--api-key', 'planted-secret'], context)).toBe(2);
    expect(context.stderr.text).toContain('not accepted as an argument');
    expect(context.stdout.text + context.stderr.text).not.toContain('planted-secret');
  });

  it('shows the version', async () => {
    const context = fakeContext();
    expect(await run(['--version'], context)).toBe(0);
    const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(context.stdout.text).toBe(`${version}\n`);
  });

  it.each([
    [
      [],
      'rx-trade-feed: A command is missing. The commands are demo, listen, record, replay, serve, cluster, doctor, top.\nTry rx-trade-feed --help.\n',
    ],
    [['listne'], 'rx-trade-feed: There is no command listne. Did you mean listen?\nTry rx-trade-feed --help.\n'],
    [['serve', '-x'], 'rx-trade-feed: There is no option -x.\nTry rx-trade-feed serve --help.\n'],
  ])('explains the problem with %j and how to get help', async (args, says) => {
    const context = fakeContext();
    expect(await run(args, context)).toBe(2);
    expect(context.stderr.text).toBe(says);
    expect(context.stdout.text).toBe('');
  });

  it.each([
    [new Error('odd'), /^rx-trade-feed: an unexpected error occurred; this is a bug\.\nError: odd\n {4}at /],
    ['odd', /^rx-trade-feed: an unexpected error occurred; this is a bug\.\n'odd'\n$/],
  ])('shows the stack of a bug: %s', async (bug, says) => {
    const context = fakeContext();
    const failing = { ...context, interrupt$: throwError(() => bug) };
    const env = { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' };
    expect(await run(['listen', '-q'], { ...failing, env })).toBe(1);
    expect(context.stderr.text).toMatch(says);
  });
});
