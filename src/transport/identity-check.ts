import type { PeerCertificate } from 'node:tls';
import type { TlsOptions } from '../options.js';

/**
 * Wraps a user's `checkServerIdentity`. An error that it returns or throws gets the code of Node's check, so the failure is
 * `untrusted-certificate`. An exception is caught, because it would end the process.
 */
export const withIdentityCheck = (tls: TlsOptions | undefined): TlsOptions => {
  if (tls?.checkServerIdentity === undefined) return { ...tls };
  const check = tls.checkServerIdentity;
  const checkServerIdentity = (host: string, certificate: PeerCertificate): Error | undefined => {
    const refused = attempt(() => check(host, certificate));
    return refused && Object.assign(new Error(refused.message), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  };
  return { ...tls, checkServerIdentity };
};

const attempt = (check: () => Error | undefined): Error | undefined => {
  try {
    return check();
  } catch (thrown) {
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
};
