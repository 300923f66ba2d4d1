import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { promisify } from 'node:util';
import { connectionOptions, targetOf } from '../../src/cli/connection.js';
import { hasColors, interrupts, isTerminal, processContext } from '../../src/cli/context.js';
import { certificateFor } from '../support/certificate.js';
import { FakeOutput } from './support/fakes.js';
import { tempFolder } from './support/temp-folder.js';

const folder = tempFolder();
const env = { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' };

/** Returns the function that reads the key of a file for each ticket. */
const keyReader = async (keyFile: string): Promise<() => Promise<string>> =>
  (await connectionOptions({ keyFile }, { env })).apiKey as () => Promise<string>;

describe('the options of a connection', () => {
  it('are read from the environment', async () => {
    const options = { baseUrl: env.TRADE_FEED_BASE_URL, apiKey: 'planted-key', tls: undefined, backoff: undefined };
    expect(await connectionOptions({}, { env })).toStrictEqual(options);
  });

  it('are read from arguments and files first', async () => {
    const { cert } = await certificateFor();
    const ca = await folder.file('ca.pem', cert);
    const values = { baseUrl: 'https://feed.example', keyFile: await folder.file('key', 'a-key\r\n'), ca, retries: 3 };
    const options = await connectionOptions(values, { env });
    expect(options).toMatchObject({ baseUrl: 'https://feed.example', tls: { ca: cert }, backoff: { maxAttempts: 3 } });
    expect(await (options.apiKey as () => Promise<string>)()).toBe('a-key');
  });

  it('have a key that is read again for every ticket, so it can rotate, and be missing for a moment', async () => {
    const readKey = await keyReader(await folder.file('rotating', 'first'));
    await folder.file('rotating', '');
    await expect(readKey()).rejects.toThrow(/--key-file must contain only an API key/);
    await folder.file('rotating', 'second\n');
    expect(await readKey()).toBe('second');
  });

  it('have a key that is read once from a pipe', async () => {
    const pipe = folder.path('pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const written = folder.file('pipe', 'key-of-the-pipe\n');
    expect((await connectionOptions({ keyFile: pipe }, { env })).apiKey).toBe('key-of-the-pipe');
    await written;
  });

  it.each<[string, object, Readonly<Record<string, string>>, number, RegExp]>([
    ['no address', {}, {}, 2, /^The address of the service is missing\. .*TRADE_FEED_BASE_URL.*--base-url.*serve/],
    ['no key', {}, { ...env, TRADE_FEED_API_KEY: '' }, 2, /^The API key is missing\. .*TRADE_FEED_API_KEY.*--key-file/],
    ['no file', { keyFile: 'missing' }, env, 8, /^Cannot read the file of --key-file: there is no such file\.$/],
    ['another file', { keyFile: 'ODD' }, env, 2, /--key-file must contain only an API key/],
    ['no CA', { ca: 'missing' }, env, 8, /^Cannot read the file of --ca: there is no such file\.$/],
    ['a CA that is none', { ca: 'ODD' }, env, 2, /--ca must contain certificates in PEM/],
  ])('are refused with %s, and the content of a file is not shown', async (_what, values, given, exitCode, message) => {
    const odd = await folder.file('odd', 'two planted-words\nand lines');
    const files = Object.fromEntries(Object.entries(values).map(([name, file]) => [name, file === 'ODD' ? odd : file]));
    const error = (await connectionOptions(files, { env: given }).catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ exitCode, message: expect.stringMatching(message) });
    expect(error.message).not.toContain('planted');
  });

  it('name a target, which may lack the address or the key', () => {
    const none = { baseUrl: undefined, hasKey: false };
    expect(targetOf({}, { env: {} })).toStrictEqual(none);
    expect(targetOf({}, { env })).toStrictEqual({ baseUrl: env.TRADE_FEED_BASE_URL, hasKey: true });
    expect(targetOf({ keyFile: 'k' }, { env: { TRADE_FEED_BASE_URL: '' } })).toStrictEqual({ ...none, hasKey: true });
  });
});

describe('the signals of the process', () => {
  const signalled = (streams: object, signal: string): readonly string[] => {
    const fake = Object.assign(new EventEmitter(), { env: {}, stdin: 1, ...streams });
    const { interrupt$ } = processContext(fake as unknown as NodeJS.Process);
    const signals: string[] = [];
    const subscriptions = [interrupt$.subscribe((name) => signals.push(name)), interrupt$.subscribe()];
    fake.emit(signal, signal, 2);
    for (const subscription of subscriptions) subscription.unsubscribe();
    expect(fake.eventNames()).toStrictEqual([]);
    return signals;
  };
  const [terminal, pipe] = [() => new FakeOutput({ columns: 80, rows: 24 }), () => new FakeOutput()];

  it.each(Object.keys(interrupts))('include %s, while there is a subscriber', (signal) => {
    expect(signalled({ stdout: pipe(), stderr: pipe() }, signal)).toStrictEqual([signal]);
  });

  it.each([
    ['SIGINT', terminal(), terminal(), ['', '\n']],
    ['SIGINT', pipe(), terminal(), ['', '\n']],
    ['SIGINT', terminal(), pipe(), ['\n', '']],
    ['SIGINT', pipe(), pipe(), ['', '']],
    ['SIGTERM', terminal(), terminal(), ['', '']],
  ])('end the line of the ^C that a terminal prints, once: %s (%#)', (signal, stdout, stderr, written) => {
    signalled({ stdout, stderr }, signal);
    expect([stdout.text, stderr.text]).toEqual(written);
  });
});

it('uses control sequences on a terminal unless it is dumb, and colors unless NO_COLOR is set', () => {
  const terminal = new FakeOutput({ columns: 80, rows: 24 });
  const envs = [{}, { TERM: 'dumb' }, { NO_COLOR: '' }, { NO_COLOR: '1' }];
  expect(envs.map((given) => isTerminal(terminal, { env: given }))).toEqual([true, false, true, true]);
  expect(envs.map((given) => hasColors(terminal, { env: given }))).toEqual([true, false, true, false]);
  expect(isTerminal(new FakeOutput(), { env: {} })).toBe(false);
});
