import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError, localError, usageError } from '../cli-error.js';
import { ExitCode } from '../exit-code.js';

/** The TLS options of `serve`. */
export interface TlsArguments {
  readonly tls?: true;
  readonly cert?: string;
  readonly key?: string;
}

/** A certificate in PEM, and the file that a client needs to trust it. */
export interface ServedCertificate {
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** The file of a certificate that was created for this run. */
  readonly caFile: string | undefined;
  /** Removes that file. */
  close(): Promise<void>;
}

type SelfSigned = Pick<typeof import('selfsigned'), 'generate'>;

/**
 * Reads the certificate of `--cert` and `--key`, or creates one for 127.0.0.1 and localhost for `--tls`.
 *
 * @param load - loads the optional package that creates certificates
 * @throws CliError when a file cannot be read, or the package is not installed
 */
export const certificateFor = async (
  { tls, cert, key }: TlsArguments,
  load: () => Promise<SelfSigned> = () => import('selfsigned'),
): Promise<ServedCertificate> => {
  if ((cert === undefined) !== (key === undefined))
    throw usageError('--cert needs --key, and --key needs --cert: use both.');
  if (cert !== undefined && key !== undefined) {
    return {
      tls: { cert: await read('--cert', cert), key: await read('--key', key) },
      caFile: undefined,
      close: nothing,
    };
  }
  return tls
    ? createCertificate(await load().catch(notInstalled))
    : { tls: undefined, caFile: undefined, close: nothing };
};

const nothing = (): Promise<void> => Promise.resolve();

const read = (option: string, file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    throw localError(`Cannot read the file of ${option}`, error);
  });

const notInstalled = (cause: unknown): never => {
  throw new CliError(
    ExitCode.local,
    'serve --tls creates a certificate with the package selfsigned, which is not installed. ' +
      'Install it (npm install --save-dev selfsigned), or use --cert and --key.',
    cause,
  );
};

const createCertificate = async ({ generate }: SelfSigned): Promise<ServedCertificate> => {
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
