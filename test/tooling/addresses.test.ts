/** @lane processes */
import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tempFolder } from '../cli/support/temp-folder.js';
import { read, root } from '../docs/fences.js';

interface Addresses {
  readonly repositoryIn: (source: string) => string;
  readonly addressProblems: (repository: string, manifest: object) => readonly string[];
  readonly writeAddresses: (repository: string, folder: string) => void;
}
const { repositoryIn, addressProblems, writeAddresses } = (await import(
  pathToFileURL(join(root, 'scripts/addresses.mjs')).href
)) as Addresses;

const address = 'https://example.com/owner/rx-trade-feed';

it('the release check finds the constant of the addresses in its file', () => {
  expect(typeof repositoryIn(read('src/protocol/failures/meanings.ts'))).toBe('string');
  expect(repositoryIn(`export const repository = '${address}' as string;`)).toBe(address);
  expect(() => repositoryIn('export const other = 1;')).toThrow('has no constant `repository`');
});

const folder = tempFolder();

it('the release check names each field of package.json that differs, and writes them all on demand', async () => {
  const file = await folder.file('package.json', read('package.json'));
  const written = (): object => JSON.parse(readFileSync(file, 'utf8')) as object;
  expect(addressProblems(address, written()).map((line) => /`(.+?)`/.exec(line)?.[1])).toEqual([
    ...['homepage', 'bugs.url', 'repository.type', 'repository.url'],
  ]);
  writeAddresses(address, folder.path('.'));
  expect(addressProblems(address, written())).toEqual([]);
  expect(written()).toEqual({
    ...(JSON.parse(read('package.json')) as object),
    homepage: `${address}#readme`,
    repository: { type: 'git', url: `git+${address}.git` },
    bugs: { url: `${address}/issues` },
  });
  expect(addressProblems(address, { ...written(), bugs: { url: 'https://other.example' } })).toHaveLength(1);
});
