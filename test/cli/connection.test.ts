import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { connectionOptions, targetOf } from '../../src/cli/connection.js';
import { certificateFor } from '../support/certificate.js';
import { tempFolder } from './support/temp-folder.js';

const folder = tempFolder();
const env = { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' };
const usage = (message: RegExp) => expect.objectContaining({ exitCode: 2, message: expect.stringMatching(message) });
const local = (message: RegExp) => expect.objectContaining({ exitCode: 8, message: expect.stringMatching(message) });

describe('connectionOptions', () => {
  it('are read from the environment', async () => {
    expect(await connectionOptions({}, { env })).toStrictEqual({
      baseUrl: env.TRADE_FEED_BASE_URL,
      apiKey: 'planted-key',
      tls: undefined,
      backoff: undefined,
    });
  });

  it('are read from arguments and files first', async () => {
    const { cert } = await certificateFor();
    const ca = await folder.file('ca.pem', cert);
    const keyFile = await folder.file('key', 'key-of-the-file\r\n');
    const values = { baseUrl: 'https://feed.example', keyFile, ca, retries: 3 };
    const options = await connectionOptions(values, { env });
    expect(options).toMatchObject({ baseUrl: 'https://feed.example', tls: { ca: cert }, backoff: { maxAttempts: 3 } });
    expect(await (options.apiKey as () => Promise<string>)()).toBe('key-of-the-file');
  });

  it('read a regular key file for every ticket, so that the key can rotate', async () => {
    const keyFile = await folder.file('rotating', 'first');
    const { apiKey } = await connectionOptions({ keyFile }, { env });
    await folder.file('rotating', 'second\n');
    expect(await (apiKey as () => Promise<string>)()).toBe('second');
  });

  it('let the feed retry when the file is empty for a moment', async () => {
    const keyFile = await folder.file('emptied', 'first');
    const { apiKey } = await connectionOptions({ keyFile }, { env });
    const readKey = apiKey as () => Promise<string>;
    await folder.file('emptied', '');
    await expect(readKey()).rejects.toThrow(/--key-file must contain only an API key/);
    await folder.file('emptied', 'second');
    expect(await readKey()).toBe('second');
  });

  it('read a pipe once', async () => {
    const pipe = folder.path('pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const written = folder.file('pipe', 'key-of-the-pipe\n');
    expect((await connectionOptions({ keyFile: pipe }, { env })).apiKey).toBe('key-of-the-pipe');
    await written;
  });

  it('name the missing setting, and what to do without an account', async () => {
    await expect(connectionOptions({}, { env: {} })).rejects.toEqual(
      usage(/^The address of the service is missing\. .*TRADE_FEED_BASE_URL.*--base-url.*serve/),
    );
    await expect(connectionOptions({}, { env: { ...env, TRADE_FEED_API_KEY: '' } })).rejects.toEqual(
      usage(/^The API key is missing\. .*TRADE_FEED_API_KEY.*--key-file/),
    );
  });

  it('name a file that cannot be read or used, never its content', async () => {
    const odd = await folder.file('odd', 'two planted-words\nand lines');
    const missing = folder.path('missing');
    await expect(connectionOptions({ keyFile: missing }, { env })).rejects.toEqual(
      local(/^Cannot read the file of --key-file: there is no such file\.$/),
    );
    await expect(connectionOptions({ keyFile: odd }, { env })).rejects.toEqual(
      usage(/--key-file must contain only an API key/),
    );
    await expect(connectionOptions({ keyFile: odd }, { env })).rejects.not.toThrow(/planted/);
    await expect(connectionOptions({ ca: missing }, { env })).rejects.toEqual(
      local(/^Cannot read the file of --ca: there is no such file\.$/),
    );
    await expect(connectionOptions({ ca: odd }, { env })).rejects.toEqual(
      usage(/--ca must contain certificates in PEM/),
    );
  });
});

describe('targetOf', () => {
  it('returns the service of the arguments and the environment', () => {
    expect(targetOf({}, { env: {} })).toStrictEqual({ baseUrl: undefined, hasKey: false });
    expect(targetOf({}, { env })).toStrictEqual({ baseUrl: env.TRADE_FEED_BASE_URL, hasKey: true });
    expect(targetOf({ keyFile: 'k' }, { env: { TRADE_FEED_BASE_URL: '' } })).toStrictEqual({
      baseUrl: undefined,
      hasKey: true,
    });
  });
});
