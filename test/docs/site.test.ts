import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { documents, fencesOf, proseOf, read, root } from './fences.js';
import { siteLibrary } from './site.js';

const { diagrams, runNamed, altTextOf, diagramSvg } = await siteLibrary(
  ...['diagrams/diagrams.mjs', 'diagrams/run.mjs', 'diagrams/svg.mjs'],
);

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

it('docs/how-to/proxies.md shows the nginx configuration that the tests run', () => {
  const tested = read('test/peers/nginx.mjs')
    .split('\n')
    .map((line) => line.trim());
  const fences = fencesOf('docs/how-to/proxies.md').filter(({ language }) => language === 'nginx');
  const lines = fences.flatMap(({ code }) => code.split('\n')).map((line) => line.trim());
  expect(lines).toContain('proxy_set_header Upgrade $http_upgrade;');
  expect(lines.filter((line) => line !== '' && !tested.includes(line))).toEqual([]);
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
