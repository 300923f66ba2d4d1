import type { PeerCertificate } from 'node:tls';

/** Restores the Buffers of a certificate. A structured clone contains a `Uint8Array` instead. The chain of issuers may be circular. */
export const restoreCertificate = (cloned: object): PeerCertificate => {
  const seen = new Set<object>();
  const restore = (part: object): void => {
    if (seen.has(part)) return;
    seen.add(part);
    for (const [name, value] of Object.entries(part) as [string, unknown][]) {
      if (value instanceof Uint8Array)
        Reflect.set(part, name, Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      else if (typeof value === 'object' && value !== null) restore(value);
    }
  };
  restore(cloned);
  return cloned as PeerCertificate;
};
