import { expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { documents, proseOf, root } from './fences.js';

// The anchors of repository pages and typedoc: lower case, dashes for spaces, no punctuation.
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
