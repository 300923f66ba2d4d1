import { beforeAll, describe, expect, it } from '@jest/globals';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { filesIn, root } from '../docs/fences.js';

interface OneNode {
  readonly onOneNode: Readonly<Record<string, readonly string[]>>;
  readonly ignoredPatterns: () => readonly string[];
}

let files: readonly string[];
let patterns: readonly RegExp[];
beforeAll(async () => {
  const file = pathToFileURL(join(root, 'scripts/one-node.mjs')).href;
  const { onOneNode, ignoredPatterns } = (await import(file)) as OneNode;
  files = Object.values(onOneNode).flat();
  patterns = ignoredPatterns().map((pattern) => new RegExp(pattern));
});

describe('the test files that run on one Node version', () => {
  it('are in folders whose tests check texts, tools and reports', () => {
    const folders = new Set(files.map((file) => file.split('/').slice(0, 2).join('/')));
    expect([...folders].sort()).toEqual([
      'reliability/test',
      'test/bench',
      'test/browser',
      'test/docs',
      'test/security',
      'test/tooling',
    ]);
  });

  it('are exactly the files that jest ignores on another version', () => {
    const all = [...filesIn('test', '.test.ts'), ...filesIn('reliability/test', '.test.ts')];
    const ignored = all.filter((file) => patterns.some((pattern) => pattern.test(`/repository/${file}`)));
    expect(ignored.sort()).toEqual([...files].sort());
  });
});
