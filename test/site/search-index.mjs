// Reads the search index of the built site and searches it like the page.
import MiniSearch from 'minisearch';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { searchOptions } from '../../docs/.vitepress/search-options.mjs';

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

/** Returns the sections that match a text, best first. */
export const sections = (text) => index.search(text);

/** Returns the pages that match a text, best first, each once and without its extension. */
export const search = (text) => [...new Set(sections(text).map(({ id }) => id.replace(/(\.html)?(#.*)?$/, '')))];
