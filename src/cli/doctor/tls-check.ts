import { isIP } from 'node:net';
import { connect as connectTls, type DetailedPeerCertificate, TLSSocket } from 'node:tls';
import { proxyFromEnvironment } from '../../index.js';
import { ExitCode } from '../exit-code.js';
import { count } from '../view/units.js';
import { type Check, type Checked, failed, type Facts, ok, skipped, warning } from './check.js';

/** How long the server may be silent, in ms. */
const silenceMs = 10_000;
/** Fewer days until a certificate expires are a warning. */
const fewDays = 14;
const dayMs = 24 * 3_600_000;

/** Checks TLS. It sends nothing after the TLS handshake. */
export const tlsCheck: Check = {
  name: 'tls',
  run: async (facts) => {
    if (facts.url?.protocol === 'http:') return skipped('none: the service is on this machine');
    try {
      const socket = await connected(facts);
      const shown = tlsFacts(socket);
      socket.destroy();
      return tlsFinding(shown, Date.now());
    } catch (error) {
      return noTlsFinding(error as NodeJS.ErrnoException);
    }
  },
};

/** What the TLS handshake showed. */
export interface TlsFacts {
  readonly protocol: string;
  /** The code of the verification error; `undefined` if the certificate is trusted for this host. */
  readonly problem: string | undefined;
  /** The names in the chain, from the server to the root. */
  readonly chain: readonly string[];
  /** The names for which the certificate is valid. */
  readonly names: string;
  /** When the certificate expires, in epoch ms. */
  readonly expiresAt: number;
}

const connected = async ({ url, options, context }: Facts): Promise<TLSSocket> => {
  // An untrusted certificate is examined.
  const tls = { ...options?.tls, rejectUnauthorized: false };
  const host = (url as URL).hostname.replace(/^\[|\]$/g, '');
  const port = Number((url as URL).port || 443);
  const { agent } = await proxyFromEnvironment({ env: context.env, tls });
  return new Promise((resolve, reject) => {
    if (agent) {
      const done = (error: Error | null, socket: unknown): void =>
        socket instanceof TLSSocket ? resolve(socket) : reject(error ?? new Error('no TLS connection'));
      agent.createConnection({ host, port, defaultPort: 443 }, done);
      return;
    }
    const socket = connectTls({ host, port, servername: isIP(host) === 0 ? host : '', ...tls })
      .once('secureConnect', () => resolve(socket))
      .once('error', reject)
      .setTimeout(silenceMs, () => socket.destroy(new Error(`no answer in ${silenceMs} ms`)));
  });
};

/** Returns what a TLS handshake showed. */
export const tlsFacts = (socket: Pick<TLSSocket, 'getPeerCertificate' | 'getProtocol' | 'authorized'>): TlsFacts => {
  const certificate = socket.getPeerCertificate(true);
  const { authorizationError } = socket as { readonly authorizationError?: unknown };
  return {
    protocol: socket.getProtocol() ?? 'TLS',
    problem: socket.authorized ? undefined : codeOf(authorizationError),
    chain: chainOf(certificate),
    names: (certificate.subjectaltname ?? '').replaceAll(/(DNS|IP Address):/g, '') || nameOf(certificate.subject),
    expiresAt: Date.parse(certificate.valid_to),
  };
};

const codeOf = (error: unknown): string =>
  error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error);

// A root certificate is its own issuer. An incomplete chain ends with a certificate that has none.
const chainOf = (certificate: Partial<DetailedPeerCertificate>): readonly string[] => {
  const { subject, issuerCertificate: issuer } = certificate;
  return [nameOf(subject), ...(issuer === undefined || issuer === certificate ? [] : chainOf(issuer))];
};

const nameOf = ({ CN, O }: Partial<DetailedPeerCertificate['subject']> = {}): string =>
  [CN ?? O ?? 'without a name'].flat().join(', ');

/** Reports the certificate. */
export const tlsFinding = ({ protocol, problem, chain, names, expiresAt }: TlsFacts, now: number): Checked => {
  const date = new Date(expiresAt).toISOString().slice(0, 10);
  const days = Math.floor((expiresAt - now) / dayMs);
  if (problem === 'CERT_HAS_EXPIRED')
    return failed(
      ExitCode.certificate,
      `The certificate expired on ${date}, by the clock of this machine.`,
      `The service must renew it. If the date is in the future, set the clock of this machine: it is ${new Date(now).toISOString()}.`,
    );
  if (problem === 'CERT_NOT_YET_VALID')
    return failed(
      ExitCode.certificate,
      'The certificate is not valid yet, by the clock of this machine.',
      `Set the clock of this machine: it is ${new Date(now).toISOString()}. If that is right, the service must replace the certificate.`,
    );
  if (problem === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return failed(ExitCode.certificate, `The certificate is for ${names}.`, 'Check the host of the base URL.');
  if (problem !== undefined)
    return failed(
      ExitCode.certificate,
      `The certificate is not trusted (${problem}): ${chain.join(' < ')}.`,
      'Use --ca FILE for the CA of a private service, or check which server answers at this address.',
    );
  const text = `${protocol}; ${chain.join(' < ')}; ${count(days)} days left`;
  return days < fewDays ? warning(text, 'The certificate expires soon. The service must renew it.') : ok(text);
};

/** Reports a server without TLS, or a connection that failed. */
export const noTlsFinding = ({ code, message }: NodeJS.ErrnoException): Checked => {
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER')
    return failed(
      ExitCode.refused,
      'The server answered without TLS, although the base URL begins with https:.',
      'Check the host and the port of the base URL: this port speaks plain HTTP or another protocol.',
    );
  return failed(
    ExitCode.unavailable,
    `The connection failed: ${message}`,
    'Check the base URL and the proxy. A firewall may also end the connection.',
  );
};
