// Writes each page of the site as plain Markdown next to its HTML, and `llms.txt`, which lists them (https://llmstxt.org).
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const frontmatter = /^---\n[\s\S]*?\n---\n+/;

/** Returns the first heading of a text, without its code marks. */
const titleOf = (text) => /^# (.+)$/m.exec(text)?.[1].replaceAll('`', '') ?? '';

const linesOf = (items, titles, base) =>
  items.flatMap(({ text, link, items: nested = [] }) => {
    const path = link?.replace(/\/$/, '/index').slice(1);
    const own = path !== undefined && path in titles ? [`- [${text}](${base}${path}.md)`] : [];
    return [...own, ...linesOf(nested, titles, base)];
  });

/** Returns `llms.txt`: the pages of the sidebar by kind. */
const llmsText = ({ title, description, groups, titles, base = '/' }) =>
  [
    `# ${title}`,
    `> ${description}`,
    ...groups.map(({ text, items }) => [`## ${text}`, linesOf(items, titles, base).join('\n')].join('\n\n')),
  ].join('\n\n') + '\n';

/** The hook `buildEnd` of VitePress. */
export const writePlainPages = async ({ srcDir, outDir, pages, dynamicRoutes, site }) => {
  const contents = new Map(dynamicRoutes.routes.map(({ path, content }) => [path, content]));
  const titles = {};
  for (const page of pages) {
    const text = (contents.get(page) ?? (await readFile(join(srcDir, page), 'utf8'))).replace(frontmatter, '');
    titles[page.replace(/\.md$/, '')] = titleOf(text);
    await mkdir(dirname(join(outDir, page)), { recursive: true });
    await writeFile(join(outDir, page), text);
  }
  const groups = site.themeConfig.sidebar['/'];
  await writeFile(join(outDir, 'llms.txt'), llmsText({ ...site, groups, titles }));
};
