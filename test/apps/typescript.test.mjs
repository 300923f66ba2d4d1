// Compiles the ten lines of the README with the module settings of docs/how-to/typescript.md, and compares the results with the table there.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { installLocked, root, tableOf, temporaryFolder } from './support.mjs';

const project = temporaryFolder('rx-trade-feed-typescript-');
await installLocked(project, 'typescript');

const versions = ['5.4', '5.8', '5.9', '6', '7'];
const [, tenLines] = /^## Ten lines$.*?^```ts\n(.*?)^```$/ms.exec(readFileSync(join(root, 'README.md'), 'utf8'));

/**
 * Returns a function that compiles a project like `tsc -p`, and returns what it would print about the project and this package. It parses each
 * declaration only once and checks no package of others, which is most of the time. TypeScript 7 has no such API, and needs none.
 */
const compilerOf = (version) =>
  (compilers[version] ??= compiler(createRequire(join(project, 'index.js'))(`typescript-${version}`)));
const compilers = {};
const packages = join(project, 'node_modules/');
const isOurs = ({ fileName }) => !fileName.startsWith(packages) || fileName.startsWith(`${packages}rx-trade-feed/`);
const compiler = (ts) => {
  const parsed = new Map();
  return (folder) => {
    const file = join(folder, 'tsconfig.json');
    const { config } = ts.readConfigFile(file, ts.sys.readFile);
    // With the name of the file, it finds the types of Node in this project.
    const { options, fileNames, errors } = ts.parseJsonConfigFileContent(config, ts.sys, folder, {}, file);
    const host = ts.createCompilerHost(options);
    const { getSourceFile } = host;
    host.getSourceFile = (file, settings, ...args) => {
      if (!file.startsWith(packages)) return getSourceFile(file, settings, ...args);
      const key = `${file} ${settings.impliedNodeFormat}`;
      if (!parsed.has(key)) parsed.set(key, getSourceFile(file, settings, ...args));
      return parsed.get(key);
    };
    const program = ts.createProgram({ rootNames: fileNames, options, host, configFileParsingDiagnostics: errors });
    const ours = program.getSourceFiles().filter(isOurs);
    const diagnostics = ts.sortAndDeduplicateDiagnostics(
      ours.flatMap((file) => ts.getPreEmitDiagnostics(program, file)),
    );
    return ts.formatDiagnostics(diagnostics, {
      getCurrentDirectory: () => folder,
      getCanonicalFileName: (name) => name,
      getNewLine: () => '\n',
    });
  };
};

const tsc7 = (cwd) =>
  spawnSync(process.execPath, [join(project, 'node_modules/typescript-7/bin/tsc'), '-p', '.'], {
    cwd,
    encoding: 'utf8',
  }).stdout;

/** Compiles a file as a module of each type, in one compilation. Returns each one's errors, or `works`. */
const compile = (version, code, types, compilerOptions) => {
  const folder = mkdtempSync(join(project, 'app-'));
  for (const type of types) {
    mkdirSync(join(folder, type));
    writeFileSync(join(folder, type, 'package.json'), JSON.stringify({ type }));
    writeFileSync(join(folder, type, 'feed.ts'), code);
  }
  // TypeScript's own declarations aren't ours to check, and take most of the time.
  const baseOptions = { noEmit: true, strict: true, target: 'es2022', skipDefaultLibCheck: true };
  const options = { ...baseOptions, ...compilerOptions };
  const files = types.map((type) => `${type}/feed.ts`);
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files }));
  const stdout = version === '7' ? tsc7(folder) : compilerOf(version)(folder);
  if (!stdout.includes('error TS')) return types.map(() => 'works');
  // An error in the settings or in a declaration belongs to all files.
  const isOfFile = (line) => /^(module|commonjs)\/feed\.ts/.test(line);
  const lines = stdout.split('\n');
  const ofAll = lines.filter((line) => line.includes('error TS') && !isOfFile(line));
  return types.map((type) => [...ofAll, ...lines.filter((line) => line.startsWith(`${type}/`))].join('\n') || 'works');
};

const [head, , ...rows] = tableOf('docs/how-to/typescript.md');

test('the table in docs/how-to/typescript.md has all versions', () =>
  assert.deepEqual(
    head.slice(3),
    versions.map((version) => `TypeScript ${version}`),
  ));

for (const [module, moduleResolution, types, ...results] of rows) {
  for (const [at, version] of versions.entries()) {
    test(`TypeScript ${version}, ${module}, ${moduleResolution}, ${types}: ${results[at]}`, () => {
      // Another test checks the declarations themselves. Leaves out the declarations for pages, which are the largest.
      const settings = { module, types: ['node'], lib: ['es2023'], skipLibCheck: true };
      if (moduleResolution !== '–') settings.moduleResolution = moduleResolution;
      for (const result of compile(version, tenLines, types === 'either' ? ['module', 'commonjs'] : [types], settings))
        if (results[at] === 'works') assert.equal(result, 'works');
        else assert.match(result, new RegExp(`error ${results[at]}:`));
    });
  }
}

const page = `
import { relayFeed$ } from 'rx-trade-feed/browser';
import { subscribed } from 'rx-trade-feed/interop';
import { conflate, frames } from 'rx-trade-feed/operators';
import { settle } from 'rx-trade-feed/settle';

export const others = [subscribed, settle];
const frames$ = relayFeed$('/feed').pipe(frames());
frames$.subscribe((frame) => { frame.data satisfies Uint8Array; });
export const newest$ = frames$.pipe(conflate((frame) => frame.feed, 1));
`;

for (const version of versions) {
  test(`TypeScript ${version} checks a page and all its declarations without types of Node`, () => {
    // Checks the declarations only once, because that takes three times as long.
    for (const settings of [
      { module: 'nodenext', skipLibCheck: false },
      { module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true },
    ])
      assert.deepEqual(compile(version, page, ['module'], { ...settings, types: [], lib: ['es2022', 'dom'] }), [
        'works',
      ]);
  });

  test(`TypeScript ${version} knows that a frame of the feed has a Buffer`, () => {
    const code = `import { tradeFeed$ } from 'rx-trade-feed';\ntradeFeed$().subscribe(({ data }) => data.readUInt8(0));`;
    const settings = { module: 'nodenext', types: ['node'], skipLibCheck: false };
    assert.deepEqual(compile(version, code, ['module'], settings), ['works']);
  });
}
