import { describe, expect, it } from '@jest/globals';
import { read } from './fences.js';
import { siteLibrary } from './site.js';

const { withClusterGoals } = await siteLibrary('cluster-goals.mjs');

const page = 'docs/reliability.md';

describe('the goals of a cluster', () => {
  it('are those of the results: run scripts/site/update-cluster-goals.mjs', () => {
    expect(read(page)).toBe(withClusterGoals(read(page)));
  });
});
