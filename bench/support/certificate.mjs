// A certificate for loopback, and a file for `NODE_EXTRA_CA_CERTS`, with which every peer trusts it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';

/** Creates `{ cert, key }` in PEM, and `caFile`, which is deleted when this process exits. */
export const certificate = async () => {
  const altNames = [
    { type: 7, ip: '127.0.0.1' },
    { type: 2, value: 'localhost' },
  ];
  const created = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames }],
  });
  const folder = mkdtempSync(join(tmpdir(), 'bench-ca-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, created.cert);
  return { cert: created.cert, key: created.private, caFile };
};
