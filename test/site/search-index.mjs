// Reads the search of the built site, and searches as the page does.
import MiniSearch from 'minisearch';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { searchOptions } from '../../scripts/site/search-options.mjs';

const chunks = resolve(import.meta.dirname, '../../site/assets/chunks');
const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndexroot'));
const { default: json } = await import(pathToFileURL(join(chunks, file)).href);

const { options, searchOptions: ranking } = searchOptions.miniSearch;
const index = MiniSearch.loadJSON(json, {
  fields: ['title', 'titles', 'text'],
  storeFields: ['title', 'titles'],
  ...options,
  searchOptions: ranking,
});

/** Returns the sections that match a text, the best first. */
export const sections = (text) => index.search(text);

/** Returns the pages that match a text, the best first, each once and without its ending. */
export const search = (text) => [...new Set(sections(text).map(({ id }) => id.replace(/(\.html)?(#.*)?$/, '')))];
