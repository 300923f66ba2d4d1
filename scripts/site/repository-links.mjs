// A plugin of markdown-it: relative links and images of a document work on the site as they do in the repository. A page that npm also
// shows can't link to files that the package lacks, so it names them in code: `examples/share.mjs`. The site links such a name to its page.
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';

/** Pages that show a file from outside `docs`. Links in that file are relative to the file. */
export const includedFrom = {
  'project/overview.md': 'README.md',
  'project/changelog.md': 'CHANGELOG.md',
  'project/contributing.md': 'CONTRIBUTING.md',
  'project/code-of-conduct.md': 'CODE_OF_CONDUCT.md',
  'project/security-policy.md': 'SECURITY.md',
  'project/examples.md': 'examples/README.md',
  'project/example-app.md': 'examples/nestjs-angular/README.md',
};

const pageOf = Object.fromEntries(Object.entries(includedFrom).map(([page, file]) => [file, page]));

/** Returns the file whose text a page shows, as a path in the repository. */
const sourceOf = (page) => includedFrom[page] ?? posix.join('docs', page);

/** Returns the address of the page that shows a file of the repository; `undefined` if no page does. */
const sitePath = (file) => {
  if (Object.hasOwn(pageOf, file)) return `/${pageOf[file]}`;
  const [, program] = /^examples\/([\w-]+)\.mjs$/.exec(file) ?? [];
  if (program !== undefined) return `/examples/${program}.md`;
  return file.startsWith('docs/') && file.endsWith('.md') ? `/${file.slice('docs/'.length)}` : undefined;
};

const { repository } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

/** Returns the address of a file that has no page: in the public repository, if package.json names one. */
const inRepository = (file) => repository && `${repository.url.replace(/^git\+|\.git$/g, '')}/blob/main/${file}`;

const isRelative = (href) => !/^([a-z]+:|\/|#)/i.test(href);

/** Returns the link of the site for a relative link of a page; `undefined` if the site has no such page. */
const linkOnSite = (page, href) => {
  const [path, ...anchor] = href.split('#');
  const file = posix.join(posix.dirname(sourceOf(page)), path);
  const target = sitePath(file) ?? inRepository(file);
  return target && [target, ...anchor].join('#');
};

/** Returns the path of an image, relative to the page that includes the document. */
const imageOnSite = (page, src) => {
  const file = posix.join(posix.dirname(sourceOf(page)), src);
  const path = posix.relative(posix.join('docs', posix.dirname(page)), file);
  return path.startsWith('.') ? path : `./${path}`;
};

/** Wraps the name of a file in code with a link to its page, unless the page is this one or the name is in a link already. */
const linkedNames = (page, Token) => (tokens) => {
  let depth = 0;
  return tokens.flatMap((token) => {
    depth += token.type === 'link_open' ? 1 : token.type === 'link_close' ? -1 : 0;
    const href = token.type === 'code_inline' && depth === 0 ? sitePath(token.content) : undefined;
    if (href === undefined || href === `/${page}`) return [token];
    const open = new Token('link_open', 'a', 1);
    open.attrSet('href', href);
    return [open, token, new Token('link_close', 'a', -1)];
  });
};

const rewritten = (page) => (tokens) => {
  // Links don't nest, so the next end belongs to the last removed beginning.
  let isRemoved = false;
  return tokens.filter((token) => {
    if (token.type === 'image' && isRelative(token.attrGet('src'))) {
      token.attrSet('src', imageOnSite(page, token.attrGet('src')));
    }
    if (token.type === 'link_close' && isRemoved) {
      isRemoved = false;
      return false;
    }
    if (token.type !== 'link_open' || !isRelative(token.attrGet('href'))) return true;
    const link = linkOnSite(page, token.attrGet('href'));
    isRemoved = link === undefined;
    if (!isRemoved) token.attrSet('href', link);
    return !isRemoved;
  });
};

export const repositoryLinks = (markdown) =>
  markdown.core.ruler.push('repository-links', ({ tokens, env, Token }) => {
    // The reference is generated with the links of the site.
    const page = env.relativePath;
    if (page === undefined || page.startsWith('api/')) return;
    const rewrite = rewritten(page);
    const link = linkedNames(page, Token);
    for (const token of tokens) if (token.children) token.children = link(rewrite(token.children));
  });

/** Returns the anchor of a heading as repositories and typedoc write it: lower case, dashes for spaces, no punctuation. */
export const headingAnchor = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
