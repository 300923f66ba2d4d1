import { describe, expect, it } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { access, readFile } from 'node:fs/promises';
import { certificateFor } from '../../../src/cli/serve/certificate.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();

describe('certificateFor', () => {
  it('creates no certificate by default', async () => {
    const served = await certificateFor({});
    expect(served).toMatchObject({ tls: undefined, caFile: undefined });
    await served.close();
  });

  it('creates a certificate for this machine, and removes its file afterwards', async () => {
    const { tls, caFile = '', close } = await certificateFor({ tls: true });
    const certificate = new X509Certificate(tls?.cert ?? '');
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(certificate.checkHost('localhost')).toBe('localhost');
    expect(await readFile(caFile, 'utf8')).toBe(tls?.cert);
    await close();
    await expect(access(caFile)).rejects.toThrow();
  });

  it('reads the certificate of the options', async () => {
    const [cert, key] = [await folder.file('cert', 'C'), await folder.file('key', 'K')];
    const { tls, caFile, close } = await certificateFor({ cert, key });
    expect([tls, caFile]).toStrictEqual([{ cert: 'C', key: 'K' }, undefined]);
    await close();
  });

  it('explains what is missing', async () => {
    await expect(certificateFor({ cert: 'x' })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('use both'),
    });
    await expect(certificateFor({ tls: true, key: 'x' })).rejects.toMatchObject({ exitCode: 2 });
    await expect(certificateFor({ cert: folder.path('none'), key: 'x' })).rejects.toMatchObject({
      exitCode: 8,
      message: 'Cannot read the file of --cert: there is no such file.',
    });
    const notThere = () => Promise.reject(new Error("Cannot find package 'selfsigned'"));
    await expect(certificateFor({ tls: true }, notThere)).rejects.toMatchObject({
      exitCode: 8,
      message: expect.stringContaining('npm install --save-dev selfsigned'),
    });
  });
});
