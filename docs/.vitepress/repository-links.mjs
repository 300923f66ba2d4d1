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

const { repository } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

/** Returns the path from a folder, as a link has it. */
const relativeTo = (folder, file) => posix.relative(folder, file).replace(/^(?!\.)/, './');

/** Returns the address of the page that shows a file of the repository; `undefined` if no page does. */
const sitePath = (file) => {
  if (Object.hasOwn(pageOf, file)) return `/${pageOf[file]}`;
  const [, program] = /^examples\/([\w-]+)\.mjs$/.exec(file) ?? [];
  if (program !== undefined) return `/examples/${program}.md`;
  return /^docs(\/.*\.md)$/.exec(file)?.[1];
};

/** Returns the address of a file: of its page, or else in the public repository, if package.json names one. */
const addressOf = (file) =>
  sitePath(file) ?? (repository && `${repository.url.replace(/^git\+|\.git$/g, '')}/blob/main/${file}`);

const isRelative = (href) => !/^([a-z]+:|\/|#)/i.test(href);

export const repositoryLinks = (markdown) =>
  markdown.core.ruler.push('repository-links', ({ tokens, env, Token }) => {
    const page = env.relativePath;
    // The reference is generated with the links of the site.
    if (page === undefined || page.startsWith('api/')) return;
    const fileOf = (path) => posix.join(posix.dirname(includedFrom[page] ?? `docs/${page}`), path);
    const open = (href) => Object.assign(new Token('link_open', 'a', 1), { attrs: [['href', href]] });
    for (const token of tokens) {
      // Of the link around the next token: whether it stays. Links don't nest.
      let isLink;
      token.children = token.children?.flatMap((each) => {
        const { type, content } = each;
        const [name, address] = type === 'image' ? ['src', each.attrGet('src')] : ['href', each.attrGet('href')];
        if (type === 'image' && isRelative(address))
          each.attrSet(name, relativeTo(posix.join('docs', posix.dirname(page)), fileOf(address)));
        if (type === 'link_open') {
          const [path, ...anchor] = address.split('#');
          const target = isRelative(address) ? addressOf(fileOf(path)) : path;
          isLink = target !== undefined;
          if (isLink) each.attrSet(name, [target, ...anchor].join('#'));
          return isLink ? [each] : [];
        }
        if (type === 'link_close') {
          const wasLink = isLink;
          isLink = undefined;
          return wasLink ? [each] : [];
        }
        // The name of a file in code becomes a link to its page, unless the page is this one.
        const href = type === 'code_inline' && isLink !== true ? sitePath(content) : undefined;
        return href === undefined || href === `/${page}`
          ? [each]
          : [open(href), each, new Token('link_close', 'a', -1)];
      });
    }
  });

/** Returns the anchor of a heading as repositories and typedoc write it: lower case, dashes for spaces, no punctuation. */
export const headingAnchor = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
