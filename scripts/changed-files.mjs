// The files that differ from `main`. `npm test` checks the format of these alone, and with the linter these and `src`: CI has checked all others.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

// A change in one of these files can change the result for every file.
const decidesAll = /^(\.prettier|\.editorconfig$|eslint\.config|tsconfig\.json$|package-lock\.json$)/;

/** Returns the files to check, `['.']` for all of them: outside a git repository, and if it has no branch `main`. */
export const filesToCheck = (folder = '.') => {
  const git = (line, ...more) =>
    execFileSync('git', [...line.split(' '), ...more], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  try {
    // The last one is the branch of the remote repository, if there is one.
    const main = git('for-each-ref --format=%(refname) refs/heads/main refs/remotes/origin/main').split('\n').at(-1);
    const changed = git('diff --name-only -z', git('merge-base HEAD', main));
    const added = git('ls-files --others --exclude-standard -z');
    const paths = `${changed}${added}`.split('\0').filter((path) => path !== '' && existsSync(join(folder, path)));
    return paths.some((path) => decidesAll.test(path)) ? ['.'] : paths;
  } catch {
    return ['.'];
  }
};
