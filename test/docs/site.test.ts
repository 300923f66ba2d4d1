import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { documents, fencesOf, proseOf, read, root } from './fences.js';
import { siteLibrary } from './site.js';

const { withClusterGoals, ...ofDiagrams } = await siteLibrary(
  'cluster-goals.mjs',
  ...['diagrams/diagrams.mjs', 'diagrams/run.mjs', 'diagrams/svg.mjs'],
);
const { performancePages, reliabilityPages } = await siteLibrary(
  ...['../../bench/lib/update-docs.mjs', '../../reliability/lib/pages.mjs'],
);
const { diagrams, runNamed, altTextOf, diagramSvg } = ofDiagrams;

// Anchors as GitHub and typedoc make them: lower case, dashes for spaces, no punctuation.
const anchorsOf = (file: string): readonly string[] =>
  [...proseOf(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );

const problemOf = (file: string, link: string): string | undefined => {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? file : join(dirname(file), path);
  if (!existsSync(join(root, target))) return `${file}: ${link}: the file does not exist`;
  const isMissing = anchor !== undefined && !anchorsOf(target).includes(anchor);
  return isMissing ? `${file}: ${link}: the heading does not exist` : undefined;
};

it.each([...documents(), 'examples/README.md'])('every relative link of %s has a target', (file) => {
  const links = [...proseOf(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link as string);
  expect(links.flatMap((link) => problemOf(file, link) ?? [])).toEqual([]);
});

it('the goals of a cluster match the results: run scripts/site/update.mjs cluster-goals', () => {
  expect(read('docs/reliability/replicas.md')).toBe(withClusterGoals(read('docs/reliability/replicas.md')));
});

it('docs/how-to/proxies.md shows the nginx configuration that the tests run', () => {
  const tested = read('test/peers/nginx.mjs')
    .split('\n')
    .map((line) => line.trim());
  const fences = fencesOf('docs/how-to/proxies.md').filter(({ language }) => language === 'nginx');
  const lines = fences.flatMap(({ code }) => code.split('\n')).map((line) => line.trim());
  expect(lines).toContain('proxy_set_header Upgrade $http_upgrade;');
  expect(lines.filter((line) => line !== '' && !tested.includes(line))).toEqual([]);
});

describe('the pages of performance and reliability', () => {
  it.each<[string, () => Readonly<Record<string, string>>]>([
    ['npm run bench -- all --write', performancePages],
    ['node reliability/lib/update-docs.mjs', reliabilityPages],
  ])('show the figures and tables of the results: run %s', (_command, pagesOf) => {
    for (const [file, text] of Object.entries(pagesOf())) expect([file, read(file)]).toEqual([file, text]);
  });
});

const names = Object.keys(diagrams);

describe('a diagram of an operator', () => {
  it.each(names)('%s shows what the operator does: run scripts/site/update.mjs diagrams', async (name) => {
    expect(read(`docs/diagrams/${name}.svg`)).toBe(diagramSvg(await runNamed(name)));
  });

  it('is once in docs/operators.md or docs/outcomes.md, with its text', async () => {
    const pages = read('docs/operators.md') + read('docs/outcomes.md');
    const images = [...pages.matchAll(/^!\[(.*)\]\(diagrams\/(.+)\.svg\)$/gm)];
    expect(images.map(([, , name]) => name).sort()).toEqual([...names].sort());
    for (const [, text, name = ''] of images) expect(text).toBe(altTextOf(await runNamed(name)));
  });
});
