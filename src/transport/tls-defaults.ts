import tls from 'node:tls';

/** What a thread's TLS connections trust and offer. A program or Node's flags can change it. */
export interface TlsDefaults {
  /** The certificates in PEM; `undefined` before Node 22.15, which can't tell and has no way to change them. */
  readonly ca: readonly string[] | undefined;
  readonly minVersion: tls.SecureVersion;
  readonly maxVersion: tls.SecureVersion;
  readonly ciphers: string;
  readonly ecdhCurve: string;
  /** `NODE_TLS_REJECT_UNAUTHORIZED`, which Node reads for each connection. */
  readonly rejectUnauthorized: string | undefined;
}

/** Since Node 22.15 and 22.19. Node returns the same array until the certificates change. */
interface NewerTls {
  readonly getCACertificates?: (type: 'default' | 'bundled' | 'extra') => readonly string[];
  readonly setDefaultCACertificates?: (ca: readonly string[]) => void;
}

const newerTls = tls as NewerTls;
const variable = 'NODE_TLS_REJECT_UNAUTHORIZED';

export const tlsDefaults = (): TlsDefaults => ({
  ca: newerTls.getCACertificates?.('default'),
  minVersion: tls.DEFAULT_MIN_VERSION,
  maxVersion: tls.DEFAULT_MAX_VERSION,
  ciphers: tls.DEFAULT_CIPHERS,
  ecdhCurve: tls.DEFAULT_ECDH_CURVE,
  rejectUnauthorized: process.env[variable],
});

/** Takes over the defaults of another thread. */
export const setTlsDefaults = (defaults: TlsDefaults): void => {
  const { ca, minVersion, maxVersion, ciphers, ecdhCurve, rejectUnauthorized } = defaults;
  const own = newerTls.getCACertificates?.('default');
  // Setting them takes 100 ms, and would forget those of `--use-openssl-ca`, which the whole process has.
  if (ca && own && !(ca.length === own.length && areSame(ca, own))) newerTls.setDefaultCACertificates?.(ca);
  Object.assign(tls, {
    ...{ DEFAULT_MIN_VERSION: minVersion, DEFAULT_MAX_VERSION: maxVersion },
    ...{ DEFAULT_CIPHERS: ciphers, DEFAULT_ECDH_CURVE: ecdhCurve },
  });
  if (rejectUnauthorized === undefined) Reflect.deleteProperty(process.env, variable);
  else process.env[variable] = rejectUnauthorized;
};

/** The flags of a thread that can't take over the certificates: before Node 22.19, only this flag adds any. */
export const tlsFlags = ({ ca = [] }: TlsDefaults): string[] => {
  const { getCACertificates: get, setDefaultCACertificates: set } = newerTls;
  const hasMore = set === undefined && get !== undefined && ca.length > get('bundled').length + get('extra').length;
  return hasMore ? ['--use-system-ca'] : [];
};

export const areSame = <T extends object>(one: T, other: T): boolean =>
  (Object.keys(one) as (keyof T)[]).every((name) => one[name] === other[name]);
