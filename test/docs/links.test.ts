import { expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { documents, proseOf, root } from './fences.js';

// As repository pages and typedoc make them: lower case, spaces to dashes, signs gone.
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
  if (!existsSync(join(root, target))) return `${file}: ${link} leads to no file`;
  const isMissing = anchor !== undefined && !anchorsOf(target).includes(anchor);
  return isMissing ? `${file}: ${link} leads to no heading` : undefined;
};

it.each([...documents(), 'examples/README.md'])('every link of %s leads somewhere in the project', (file) => {
  const links = [...proseOf(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link as string);
  expect(links.flatMap((link) => problemOf(file, link) ?? [])).toEqual([]);
});
