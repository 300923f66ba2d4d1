import type { PeerCertificate } from 'node:tls';

/** Gives a certificate its Buffers back: a structured clone leaves byte arrays of them. Its issuers may go round in a ring. */
export const asCertificate = (cloned: object): PeerCertificate => {
  const seen = new Set<object>();
  const restore = (holder: object): void => {
    if (seen.has(holder)) return;
    seen.add(holder);
    for (const [name, value] of Object.entries(holder) as [string, unknown][]) {
      if (value instanceof Uint8Array)
        Reflect.set(holder, name, Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      else if (typeof value === 'object' && value !== null) restore(value);
    }
  };
  restore(cloned);
  return cloned as PeerCertificate;
};
