import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import manifest from '../../package.json' with { type: 'json' };
import { fileOf, filesOf, site, textOf } from './site-files.mjs';

const pages = filesOf('.html').filter((page) => page !== '404.html');
const html = new Map(pages.map((page) => [page, textOf(page)]));

const attributesOf = (page, name) =>
  [...html.get(page).matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g'))].map(([, value]) =>
    value.replaceAll('&amp;', '&').replaceAll('&#39;', "'"),
  );
const ids = new Map(pages.map((page) => [page, new Set(attributesOf(page, 'id'))]));

/** Returns the problem of a link: a missing page or heading. */
const problemOf = (page, href) => {
  if (/^[a-z]+:/i.test(href)) return undefined;
  const { pathname, hash } = new URL(href, `http://site/${page}`);
  const file = fileOf(pathname);
  if (file === undefined) return `${page}: ${href}: the page does not exist`;
  const anchor = decodeURIComponent(hash.slice(1));
  return anchor !== '' && ids.has(file) && !ids.get(file).has(anchor)
    ? `${page}: ${href}: the heading does not exist`
    : undefined;
};

test('every link, anchor and image of the site exists', () => {
  const missing = (page) => attributesOf(page, 'src').filter((src) => src.startsWith('/') && fileOf(src) === undefined);
  const broken = (page) => attributesOf(page, 'href').flatMap((href) => problemOf(page, href) ?? []);
  assert.deepEqual(
    pages.flatMap((page) => [...broken(page), ...missing(page)]),
    [],
  );
});

test('every page has a title, a description, one heading of the first level, no skipped level, and exists as Markdown', () => {
  for (const page of pages) {
    const text = html.get(page);
    assert.match(text, /<title>[^<]+<\/title>/, page);
    assert.match(text, /<meta name="description" content="[^"]+">/, page);
    assert.equal(text.match(/<h1[\s>]/g)?.length, 1, page);
    const [main] = /<main[\s>][\s\S]*<\/main>/.exec(text);
    const levels = [...main.matchAll(/<h([1-6])[\s>]/g)].map(([, level]) => Number(level));
    assert.ok(
      levels.every((level, at) => level <= (levels[at - 1] ?? 0) + 1),
      page,
    );
    assert.match(textOf(page.replace('.html', '.md')), /^# /m, page);
  }
  assert.match(textOf('project/overview.md'), /^# rx-trade-feed$/m);
});

test('llms.txt lists the guides and the failure codes, and its links work', () => {
  const links = [...textOf('llms.txt').matchAll(/\]\(\/(.+)\)$/gm)].map(([, path]) => path);
  for (const page of ['sharing.md', 'failures/stream.md', 'api/index.md']) assert.ok(links.includes(page), page);
  assert.deepEqual(
    links.filter((path) => fileOf(path) === undefined),
    [],
  );
});

test('the reference begins with what to import, and a sentence for each entry point and each name', () => {
  const rowsOf = (page) =>
    [...textOf(page).matchAll(/^\| \[`?(.+?)`?\]\(.+?\) \| (.*) \|$/gm)].map(([, ...row]) => row);
  const { exports } = manifest;
  const entries = Object.keys(exports).flatMap((path) =>
    path === './package.json' ? [] : [path.replace('.', manifest.name)],
  );
  assert.deepEqual(
    rowsOf('api/index.md')
      .map(([path]) => path)
      .sort(),
    entries.sort(),
  );
  const indexes = filesOf('.md').filter((file) => /^api\/(\w+\/)?index\.md$/.test(file));
  const rows = indexes.flatMap(rowsOf);
  assert.ok(rows.length > 250, `${rows.length} rows`);
  assert.deepEqual(
    rows.filter(([, sentence]) => !/^\S.{10,}/.test(sentence)),
    [],
  );
  assert.match(textOf('api/relay/functions/createRelay.md'), /import { createRelay } from 'rx-trade-feed\/relay';/);
});

test('the site takes at most 40 MB', () => {
  const bytes = filesOf('').reduce((sum, file) => sum + statSync(join(site, file)).size, 0);
  assert.ok(bytes < 40_000_000, `${bytes} bytes`);
});
