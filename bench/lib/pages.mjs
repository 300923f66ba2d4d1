// The pages of a report: docs/NAME.md is for people, and docs/NAME/*.md has all tables, next to the charts.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fill, fillFigures } from './fill.mjs';
import { root } from './root.mjs';

/** Returns the paths of the pages of a report, from the root. */
export const pagesOf = (report) => [
  `docs/${report}.md`,
  ...readdirSync(new URL(`docs/${report}/`, root))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `docs/${report}/${name}`),
];

/**
 * Returns the pages with their generated parts: texts by path.
 *
 * @param report - the name of the report: `performance` or `reliability`
 * @param mark - the name in the marks of the sections
 * @param sections - `{ name: (folder) => text }`, with the folder of the charts as the page sees it. Others keep their text
 * @param figures - `{ name: () => text }`
 * @throws Error if no page has a section
 */
export const filledPages = (report, { mark, sections, figures }) => {
  const pages = pagesOf(report).map((path) => [path, readFileSync(new URL(path, root), 'utf8')]);
  const isIn = (text) => (name) => text.includes(`<!-- ${mark}:${name} -->`);
  const missing = Object.keys(sections).filter((name) => !pages.some(([, text]) => isIn(text)(name)));
  if (missing.length > 0) throw new Error(`No page of docs/${report} has the sections ${missing.join(', ')}.`);
  const filled = pages.map(([path, text]) => {
    const folder = path === `docs/${report}.md` ? `${report}/` : '';
    const here = Object.keys(sections).filter(isIn(text));
    const texts = Object.fromEntries(here.map((name) => [name, sections[name](folder)]));
    return [path, fillFigures(fill(text, texts, mark), figures)];
  });
  return Object.fromEntries(filled);
};

/** Formats pages, and writes those that changed. */
export const writePages = async (pages) => {
  const { format, resolveConfig } = await import('prettier');
  for (const [path, text] of Object.entries(pages)) {
    const file = new URL(path, root);
    const formatted = await format(text, { ...(await resolveConfig(file)), parser: 'markdown' });
    if (formatted !== readFileSync(file, 'utf8')) writeFileSync(file, formatted);
  }
};
