import { describe, expect, it } from '@jest/globals';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { read, root } from '../docs/fences.js';

interface NodeMatrix {
  readonly nodeVersions: readonly string[];
}

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly scripts: Readonly<Record<string, string>>;
}

const ci = read('.github/workflows/ci.yml');
const release = read('.github/workflows/release.yml');
const { version, engines, scripts } = JSON.parse(read('package.json')) as Manifest;

/** Returns the scripts that a workflow runs with npm. */
const scriptsOf = (workflow: string): readonly string[] =>
  [...workflow.matchAll(/npm (?:run )?(test|docs|build|unit|addresses)\b/g)].map(([, name]) => name as string);

describe('the workflow of CI', () => {
  it('runs on every Node version that the package supports', async () => {
    const matrix = pathToFileURL(join(root, 'scripts/install.mjs')).href;
    const { nodeVersions } = (await import(matrix)) as NodeMatrix;
    const oldest = /\d+/.exec(engines.node)?.[0];
    const majors = [oldest, ...nodeVersions.map((version) => version.split('.')[0])];
    expect(/matrix: \{ node: \[(.*)\] \}/.exec(ci)?.[1]?.split(', ')).toEqual(majors);
  });
});

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
