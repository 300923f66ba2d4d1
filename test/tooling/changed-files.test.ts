import { beforeAll, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../docs/fences.js';

interface ChangedFiles {
  readonly filesToCheck: (folder: string) => readonly string[];
}

let filesToCheck: ChangedFiles['filesToCheck'];
beforeAll(async () => {
  ({ filesToCheck } = (await import(pathToFileURL(join(root, 'scripts/changed-files.mjs')).href)) as ChangedFiles);
});

/** Makes an empty folder, outside any repository. */
const startFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), 'check-format-'));
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@localhost', ...args], { cwd: folder });
  const write = (...names: string[]) => {
    for (const name of names) writeFileSync(join(folder, name), name);
  };
  return { folder, git, write, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
};

/** Makes a repository whose branch `main` has the files `old.ts` and `other.ts`. */
const startRepository = () => {
  const made = startFolder();
  made.git('init', '-q', '-b', 'main');
  made.write('old.ts', 'other.ts');
  made.git('add', '.');
  made.git('commit', '-q', '-m', 'first');
  return made;
};

describe('the files that are checked', () => {
  it('are those that differ from `main`: committed on a branch, changed or new, but not deleted', () => {
    using repository = startRepository();
    const { folder, git, write } = repository;
    expect(filesToCheck(folder)).toEqual([]);
    git('switch', '-q', '-c', 'change');
    write('committed.ts');
    git('add', '.');
    git('commit', '-q', '-m', 'second');
    writeFileSync(join(folder, 'old.ts'), 'changed');
    rmSync(join(folder, 'other.ts'));
    write('new file.ts');
    expect(filesToCheck(folder)).toEqual(['committed.ts', 'old.ts', 'new file.ts']);
  });

  it('are compared with the `main` of the remote repository, if there is one', () => {
    using repository = startRepository();
    const { folder, git, write } = repository;
    git('update-ref', 'refs/remotes/origin/main', 'HEAD');
    write('committed.ts');
    git('add', '.');
    git('commit', '-q', '-m', 'not pushed');
    expect(filesToCheck(folder)).toEqual(['committed.ts']);
  });

  it('are all files if one differs that decides about all of them', () => {
    using repository = startRepository();
    repository.write('eslint.config.js');
    expect(filesToCheck(repository.folder)).toEqual(['.']);
  });

  it('are all files if there is no repository, or no branch `main`', () => {
    using made = startFolder();
    expect(filesToCheck(made.folder)).toEqual(['.']);
    made.git('init', '-q', '-b', 'trunk');
    made.write('old.ts');
    made.git('add', '.');
    made.git('commit', '-q', '-m', 'first');
    expect(filesToCheck(made.folder)).toEqual(['.']);
  });
});
