// A certificate for loopback, and a file of it for `NODE_EXTRA_CA_CERTS`, by which every peer trusts it in the same way.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';

/** Makes `{ cert, key }` in PEM and `caFile`, which goes with this process. */
export const certificate = async () => {
  const altNames = [
    { type: 7, ip: '127.0.0.1' },
    { type: 2, value: 'localhost' },
  ];
  const made = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames }],
  });
  const folder = mkdtempSync(join(tmpdir(), 'bench-ca-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, made.cert);
  return { cert: made.cert, key: made.private, caFile };
};
