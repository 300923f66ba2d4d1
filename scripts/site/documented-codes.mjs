import { readdirSync } from 'node:fs';

const folder = new URL('../../docs/failures/', import.meta.url);

/** Returns the codes that have a page, sorted. */
export const documentedCodes = () =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.md') && name !== 'index.md')
    .map((name) => name.slice(0, -'.md'.length))
    .sort();
