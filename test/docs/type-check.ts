import { join } from 'node:path';
import ts from 'typescript';
import { root } from './fences.js';

/**
 * Type-checks programs with the options of tsconfig.json, each as a separate module, all in one compilation.
 *
 * @param programs - source texts by name. A name ends in `.ts` or `.mjs`, and errors refer to it
 * @param files - files of the project to check as well
 * @returns one line for each error
 */
export const typeErrors = (programs: Readonly<Record<string, string>>, files: readonly string[]): readonly string[] => {
  const options: ts.CompilerOptions = { ...projectOptions(), allowJs: true, checkJs: true, noEmit: true };
  // A snippet may declare a variable without using it.
  const lib = [...(options.lib ?? []), 'lib.dom.d.ts'];
  const snippetOptions = { ...options, noUnusedLocals: false, ...frameworks, lib };
  const sources = new Map(Object.entries(programs).map(([name, text]) => [join(root, 'snippets', name), text]));
  const host = ts.createCompilerHost(snippetOptions);
  const { getSourceFile, fileExists, readFile, directoryExists } = host;
  Object.assign(host, {
    getSourceFile: (name: string, ...rest: [ts.ScriptTarget | ts.CreateSourceFileOptions]) => {
      const text = sources.get(name);
      return text === undefined ? getSourceFile(name, ...rest) : ts.createSourceFile(name, text, ...rest);
    },
    fileExists: (name: string) => sources.has(name) || fileExists(name),
    readFile: (name: string) => sources.get(name) ?? readFile(name),
    directoryExists: (name: string) =>
      [...sources.keys()].some((each) => each.startsWith(`${name}/`)) || directoryExists?.(name) === true,
  } satisfies Partial<ts.CompilerHost>);
  const roots = [...sources.keys(), ...files.map((file) => join(root, file))];
  const program = ts.createProgram(roots, snippetOptions, host);
  return [...program.getOptionsDiagnostics(), ...roots.flatMap((name) => errorsOf(program, name))].map(described);
};

// Options of NestJS and Angular applications.
const frameworks = { experimentalDecorators: true, emitDecoratorMetadata: true, erasableSyntaxOnly: false };

const errorsOf = (program: ts.Program, name: string): readonly ts.Diagnostic[] => {
  const source = program.getSourceFile(name);
  if (source === undefined) throw new Error(`${name} is not part of the program.`);
  return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
};

const projectOptions = (): ts.CompilerOptions => {
  const path = join(root, 'tsconfig.json');
  const file: { config?: unknown; error?: ts.Diagnostic } = ts.readConfigFile(path, ts.sys.readFile);
  const { config, error } = file;
  if (error !== undefined) throw new Error(described(error));
  return ts.parseJsonConfigFileContent({ ...(config as object), include: [], files: [] }, ts.sys, root).options;
};

const described = ({ file, start = 0, messageText }: ts.Diagnostic): string => {
  const message = ts.flattenDiagnosticMessageText(messageText, '\n');
  if (file === undefined) return message;
  const name = file.fileName.replace(join(root, '/'), '').replace('snippets/', '');
  return `${name}, line ${file.getLineAndCharacterOfPosition(start).line + 1}: ${message}`;
};
