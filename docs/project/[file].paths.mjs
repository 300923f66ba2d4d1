import { readFileSync } from 'node:fs';
import { includedFrom } from '../.vitepress/repository-links.mjs';

/** One page for each file of the repository that the site shows as it is. */
export default {
  paths: () =>
    Object.entries(includedFrom).map(([page, file]) => ({
      params: { file: page.replace(/^project\/|\.md$/g, '') },
      content: readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'),
    })),
};
