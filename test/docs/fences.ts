import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** A block of code between two lines of three backticks, in a document or in a comment of the source. */
export interface Fence {
  /** Where it stands: `README.md:12`, so that a failure can be clicked. */
  readonly at: string;
  readonly language: string;
  readonly code: string;
  /** What the HTML comment right before it says of its check; empty when there is none. */
  readonly mark: string;
}

export const root = join(import.meta.dirname, '../..');

/** Every document of the project that a reader is shown: the README and the guides. */
export const documents = (): readonly string[] => ['README.md', ...filesIn('docs', '.md')];

/** A package of its own, with tools and settings of its own. */
const exampleApp = 'nestjs-angular/';

/** Lists the files under a folder of the project by their ending, in a stable order; the example app's are left out. */
export const filesIn = (folder: string, ending: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.startsWith(exampleApp))
    .map((name) => join(folder, name))
    .sort();

export const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Gives a document's prose alone: a comment in a shell fence looks like a heading. */
export const proseOf = (file: string): string => read(file).replaceAll(/^```[\s\S]*?^```$/gm, '');

/** Finds the fences of a document. */
export const fencesOf = (file: string): readonly Fence[] => fencesIn(file, read(file).split('\n'), 1);

/** Finds the fences in the TSDoc comments of a source file. */
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
  lines.forEach((line, index) => {
    const [, info] = /^```(.*)$/.exec(line) ?? [];
    if (info === undefined) return;
    if (open === undefined) {
      open = { line: index, language: info.trim(), mark: markAbove(lines.slice(0, index)) };
      return;
    }
    const code = lines.slice(open.line + 1, index).join('\n');
    fences.push({ at: `${file}:${firstLine + open.line}`, language: open.language, code, mark: open.mark });
    open = undefined;
  });
  if (open !== undefined) throw new Error(`${file}:${firstLine + open.line}: this fence is never closed`);
  return fences;
};

const markAbove = (lines: readonly string[]): string => {
  const last = lines.findLast((line) => line.trim() !== '') ?? '';
  return /^<!-- (.*) -->$/.exec(last)?.[1] ?? '';
};
