import { describe, expect, it } from '@jest/globals';
import { read } from '../docs/fences.js';

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
  it('runs on the oldest Node version that the package supports, and on the newer ones what differs', () => {
    const oldest = /\d+/.exec(engines.node)?.[0];
    const jobs = ci.split(/^ {2}(?=\w+:$)/m).filter((job) => /^(checks|everything):/.test(job));
    expect(jobs.map((job) => /node-version: (\d+)/.exec(job)?.[1])).toEqual([oldest, oldest]);
    expect(jobs[1]).toContain("only: ['build,jest', 'nodes']");
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
