import { readdirSync, readFileSync } from 'node:fs';

const folder = new URL('../../examples/', import.meta.url);

/** One page for each program in `examples`. Its first comment is the text of the page. */
export default {
  paths: () =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.mjs'))
      .map((name) => {
        const code = readFileSync(new URL(name, folder), 'utf8').trimEnd();
        const [, comment = ''] = /^(?:\/\/ @ts-check\n)?((?:\/\/.*\n)+)/.exec(code) ?? [];
        const [text, run = ''] = comment.replaceAll(/^\/\/ ?/gm, '').split('\n\n');
        const program = name.replace('.mjs', '');
        const content = `# examples/${name}\n\n${text}\n\n\`\`\`bash\n${run.trim()}\n\`\`\`\n\n\`\`\`js\n${code}\n\`\`\`\n`;
        return { params: { program }, content };
      }),
};
