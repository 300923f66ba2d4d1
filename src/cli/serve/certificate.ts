import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError, localError, usageError } from '../cli-error.js';
import { ExitCode } from '../exit-code.js';

/** What `serve` was told of TLS. */
export interface TlsValues {
  readonly tls?: true;
  readonly cert?: string;
  readonly key?: string;
}

/** A certificate in PEM, and where a client finds what it needs to trust it. */
export interface ServedCertificate {
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** The file of a certificate that was made for this run. */
  readonly caFile: string | undefined;
  /** Removes what was written. */
  close(): Promise<void>;
}

type SelfSigned = Pick<typeof import('selfsigned'), 'generate'>;

/**
 * Reads the certificate that was given, makes one for 127.0.0.1 and localhost, or does neither.
 *
 * @param load - loads the package that makes certificates, an optional one
 * @throws CliError when a file cannot be read, or the package is not there
 */
export const certificateFor = async (
  { tls, cert, key }: TlsValues,
  load: () => Promise<SelfSigned> = () => import('selfsigned'),
): Promise<ServedCertificate> => {
  if ((cert === undefined) !== (key === undefined)) throw usageError('--cert and --key go together: give both.');
  if (cert !== undefined && key !== undefined) {
    return {
      tls: { cert: await read('--cert', cert), key: await read('--key', key) },
      caFile: undefined,
      close: nothing,
    };
  }
  return tls ? made(await load().catch(notInstalled)) : { tls: undefined, caFile: undefined, close: nothing };
};

const nothing = (): Promise<void> => Promise.resolve();

const read = (option: string, file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    throw localError(`Cannot read the file of ${option}`, error);
  });

const notInstalled = (cause: unknown): never => {
  throw new CliError(
    ExitCode.local,
    'serve --tls makes a certificate with the package selfsigned, which is not installed. ' +
      'Install it (npm install --save-dev selfsigned), or give a certificate with --cert and --key.',
    cause,
  );
};

const made = async ({ generate }: SelfSigned): Promise<ServedCertificate> => {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  });
  const folder = await mkdtemp(join(tmpdir(), 'rx-trade-feed-'));
  const caFile = join(folder, 'ca.pem');
  await writeFile(caFile, cert);
  return { tls: { cert, key }, caFile, close: () => rm(folder, { recursive: true, force: true }) };
};
