import { expect, it } from '@jest/globals';
import { read } from '../docs/fences.js';

interface Manifest {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
}

const ci = read('.github/workflows/ci.yml');
const release = read('.github/workflows/release.yml');
const { version, scripts } = JSON.parse(read('package.json')) as Manifest;

/** Returns the scripts that a workflow runs with npm. */
const scriptsOf = (workflow: string): readonly string[] =>
  [...workflow.matchAll(/npm (?:run )?(test|docs|build|unit|addresses)\b/g)].map(([, name]) => name as string);

it.each([
  ['ci.yml', ci],
  ['release.yml', release],
])('the scripts of %s exist', (_name, workflow) => {
  const missing = scriptsOf(workflow).filter((name) => !(name in scripts));
  expect(missing).toEqual([]);
  expect(workflow).toMatch(/^permissions:\n {2}contents: read$/m);
});

it('the newest release of the changelog is the version of package.json', () => {
  const releases = [...read('CHANGELOG.md').matchAll(/^## \[(.+?)\](?: - (.+))?$/gm)];
  expect(releases.map(([, name]) => name).slice(0, 2)).toEqual(['Unreleased', version]);
  expect(releases[1]?.[2]).toMatch(/^\d{4}-\d{2}-\d{2}$/);
});
