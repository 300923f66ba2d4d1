// Which page of the site shows a file of the repository.
import { posix } from 'node:path';

/** Pages that include a file from outside `docs`. Links in that file are relative to the file. */
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
export const sourceOf = (page) => includedFrom[page] ?? posix.join('docs', page);

/** Returns the address of the page that shows a file of the repository; `undefined` if no page does. */
export const sitePath = (file) => {
  if (Object.hasOwn(pageOf, file)) return `/${pageOf[file]}`;
  const [, program] = /^examples\/([\w-]+)\.mjs$/.exec(file) ?? [];
  if (program !== undefined) return `/examples/${program}.md`;
  return file.startsWith('docs/') && file.endsWith('.md') ? `/${file.slice('docs/'.length)}` : undefined;
};
