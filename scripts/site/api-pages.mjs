// A plugin of typedoc: the pages of entry points begin with the path that an app imports.
import { MarkdownPageEvent } from 'typedoc-plugin-markdown';

/** Returns what an app imports for the folder of an entry point: `rx-trade-feed/relay`. */
export const importPathOf = (folder) => (folder === 'index' ? 'rx-trade-feed' : `rx-trade-feed/${folder}`);

const importLine = (folder, kind, name) => {
  const keyword = /^(interfaces|type-aliases)$/.test(kind) ? 'import type' : 'import';
  return `\`\`\`ts\n${keyword} { ${name} } from '${importPathOf(folder)}';\n\`\`\``;
};

/** @param {import('typedoc-plugin-markdown').MarkdownApplication} app */
export const load = (app) =>
  app.renderer.on(MarkdownPageEvent.END, (page) => {
    const [folder, kind, name] = page.url.replace(/\.md$/, '').split('/');
    const heading = /^# .*$/m;
    if (page.url === 'index.md')
      page.contents = page.contents
        .replace(heading, '# API')
        .replace('## Modules', '## Entry points')
        .replace('| Module |', '| Import |')
        .replaceAll(/^\| \[(\w+)\]/gm, (_, module) => `| [\`${importPathOf(module)}\`]`);
    else if (kind === 'index') page.contents = page.contents.replace(heading, `# ${importPathOf(folder)}`);
    else page.contents = page.contents.replace(heading, (title) => `${title}\n\n${importLine(folder, kind, name)}`);
  });
