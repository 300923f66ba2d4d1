// Type-checks the programs and files of the JSON on stdin, and prints a JSON list with one line for each error.
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import ts from 'typescript';

const root = join(import.meta.dirname, '../../..');

const described = ({ file, start = 0, messageText }) => {
  const message = ts.flattenDiagnosticMessageText(messageText, '\n');
  if (file === undefined) return message;
  const name = file.fileName.replace(join(root, '/'), '').replace('snippets/', '');
  return `${name}, line ${file.getLineAndCharacterOfPosition(start).line + 1}: ${message}`;
};

const projectOptions = () => {
  const { config, error } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  if (error !== undefined) throw new Error(described(error));
  return ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, root).options;
};

// Options of NestJS and Angular applications.
const frameworks = { experimentalDecorators: true, emitDecoratorMetadata: true, erasableSyntaxOnly: false };

const { programs, files } = await json(process.stdin);
const options = { ...projectOptions(), allowJs: true, checkJs: true, noEmit: true };
// A snippet may declare a variable without using it.
const lib = [...(options.lib ?? []), 'lib.dom.d.ts'];
const snippetOptions = { ...options, noUnusedLocals: false, ...frameworks, lib };
const sources = new Map(Object.entries(programs).map(([name, text]) => [join(root, 'snippets', name), text]));
const host = ts.createCompilerHost(snippetOptions);
const { getSourceFile, fileExists, readFile, directoryExists } = host;
Object.assign(host, {
  getSourceFile: (name, ...rest) => {
    const text = sources.get(name);
    return text === undefined ? getSourceFile(name, ...rest) : ts.createSourceFile(name, text, ...rest);
  },
  fileExists: (name) => sources.has(name) || fileExists(name),
  readFile: (name) => sources.get(name) ?? readFile(name),
  directoryExists: (name) =>
    [...sources.keys()].some((each) => each.startsWith(`${name}/`)) || directoryExists?.(name) === true,
});
const roots = [...sources.keys(), ...files.map((file) => join(root, file))];
const program = ts.createProgram(roots, snippetOptions, host);

const errorsOf = (name) => {
  const source = program.getSourceFile(name);
  if (source === undefined) throw new Error(`${name} is not part of the program.`);
  return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
};
console.log(JSON.stringify([...program.getOptionsDiagnostics(), ...roots.flatMap(errorsOf)].map(described)));
