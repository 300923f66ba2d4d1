import type { PeerCertificate } from 'node:tls';
import type { TlsOptions } from '../options.js';

/**
 * Gives a user's own check of the server's certificate the code of Node's: what it refuses is an untrusted certificate, not a
 * network that fails, and what it throws must not end the process.
 */
export const withOwnCheck = (tls: TlsOptions | undefined): TlsOptions => {
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
