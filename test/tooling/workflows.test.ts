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
  [...workflow.matchAll(/npm (?:run )?(test|docs|build|unit)\b/g)].map(([, name]) => name as string);

describe('the workflow of CI', () => {
  it('runs on every Node version that the package supports', async () => {
    const matrix = pathToFileURL(join(root, 'scripts/node-matrix.mjs')).href;
    const { nodeVersions } = (await import(matrix)) as NodeMatrix;
    const oldest = /\d+/.exec(engines.node)?.[0];
    const majors = [oldest, ...nodeVersions.map((version) => version.split('.')[0])];
    expect(/matrix: \{ node: \[(.*)\] \}/.exec(ci)?.[1]?.split(', ')).toEqual(majors);
  });

  it('runs on Linux, Windows and macOS', () => {
    for (const system of ['ubuntu-latest', 'windows-latest', 'macos-latest']) expect(ci).toContain(system);
  });
});

describe('the workflow of a release', () => {
  it('publishes with provenance, after the tests, and adds the list of packages', () => {
    const steps = ['npm ci', 'npm test', 'npm sbom --omit=dev --sbom-format=cyclonedx', 'npm publish --provenance'];
    const places = steps.map((step) => release.indexOf(step));
    expect(places).not.toContain(-1);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(release).toContain('id-token: write');
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
