import { describe, expect, it } from '@jest/globals';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { read, root } from '../docs/fences.js';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
}
interface Addresses {
  readonly repositoryIn: (source: string) => string;
  readonly addressProblems: (repository: string, manifest: object) => readonly string[];
  readonly withAddresses: (text: string, repository: string) => string;
}
const { repositoryIn, addressProblems, withAddresses } = (await import(
  pathToFileURL(join(root, 'scripts/addresses.mjs')).href
)) as Addresses;

const address = 'https://example.com/owner/rx-trade-feed';
const text = read('package.json');
const manifest = JSON.parse(text) as Manifest;

describe('the check of the addresses before a release', () => {
  it('finds the constant in its file', () => {
    expect(typeof repositoryIn(read('src/protocol/failures/meanings.ts'))).toBe('string');
    expect(repositoryIn(`export const repository = '${address}' as string;`)).toBe(address);
    expect(() => repositoryIn('export const other = 1;')).toThrow('has no constant `repository`');
  });

  it('names each field of package.json that differs, and writes them all on demand', () => {
    const { homepage: _, repository: __, bugs: ___, ...without } = manifest as Manifest & Record<string, unknown>;
    expect(addressProblems(address, without).map((line) => /^package\.json: `(\w+)`/.exec(line)?.[1])).toEqual([
      ...['homepage', 'bugs', 'repository'],
    ]);
    const written = JSON.parse(withAddresses(text, address)) as Manifest;
    expect(addressProblems(address, written)).toEqual([]);
    expect(written).toEqual({
      ...manifest,
      homepage: `${address}#readme`,
      repository: { type: 'git', url: `git+${address}.git` },
      bugs: { url: `${address}/issues` },
    });
    // npm's order, whether the fields are new or not.
    const names = Object.keys(without).flatMap((name) =>
      name === 'license' ? ['homepage', 'bugs', 'repository', name] : name,
    );
    expect(Object.keys(written)).toEqual(names);
    expect(withAddresses(JSON.stringify(written), address)).toBe(withAddresses(text, address));
    expect(addressProblems(address, { ...written, bugs: { url: 'https://other.example' } })).toHaveLength(1);
  });
});
