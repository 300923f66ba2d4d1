import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** A code block between two lines of three backticks, in a document or in a comment of the source. */
export interface Fence {
  /** The position, such as `README.md:12`, which editors turn into a link. */
  readonly at: string;
  readonly language: string;
  /** Begins with the code of the fence above it that is marked as `beginning`, if there's one. */
  readonly code: string;
  /** The text of the HTML comment before the fence; empty if there's none. */
  readonly mark: string;
}

export const root = join(import.meta.dirname, '../..');

export const documents = (): readonly string[] => ['README.md', ...filesIn('docs', '.md')];

/** Left out: the example app, which has its own tools, and the reference, which `npm run docs` generates. */
const others = ['nestjs-angular/', 'api/'];

/** Returns the files of a folder with this extension, sorted, except for the example app and the reference. */
export const filesIn = (folder: string, ending: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !others.some((folder) => name.startsWith(folder)))
    .map((name) => join(folder, name))
    .sort();

export const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Removes the code blocks from a document, because comments in shell fences look like headings. */
export const proseOf = (file: string): string => read(file).replaceAll(/^```[\s\S]*?^```$/gm, '');

export const fencesOf = (file: string): readonly Fence[] => fencesIn(file, read(file).split('\n'), 1);

/** Returns the fences in the TSDoc comments of a source file. */
export const commentFencesOf = (file: string): readonly Fence[] => {
  const source = read(file);
  return [...source.matchAll(/\/\*\*[\s\S]*?\*\//g)].flatMap(({ 0: comment, index }) => {
    const firstLine = source.slice(0, index).split('\n').length;
    const lines = comment.split('\n').map((line) => line.replace(/^ *\* ?/, ''));
    return fencesIn(relative(root, join(root, file)), lines, firstLine);
  });
};

const fencesIn = (file: string, lines: readonly string[], firstLine: number): readonly Fence[] => {
  const fences: Fence[] = [];
  let open: { line: number; language: string; mark: string } | undefined;
  let beginning = '';
  lines.forEach((line, index) => {
    const [, info] = /^```(.*)$/.exec(line) ?? [];
    if (info === undefined) return;
    if (open === undefined) {
      open = { line: index, language: info.trim(), mark: markAbove(lines.slice(0, index)) };
      return;
    }
    const code = lines.slice(open.line + 1, index).join('\n');
    if (open.mark === 'beginning') beginning = `${code}\n`;
    else {
      const { line, language, mark } = open;
      fences.push({ at: `${file}:${firstLine + line}`, language, code: beginning + code, mark });
    }
    open = undefined;
  });
  if (open !== undefined) throw new Error(`${file}:${firstLine + open.line}: this fence is never closed`);
  return fences;
};

const markAbove = (lines: readonly string[]): string => {
  const last = lines.findLast((line) => line.trim() !== '') ?? '';
  return /^<!-- (.*) -->$/.exec(last)?.[1] ?? '';
};
