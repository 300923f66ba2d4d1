// Checks the format of the files that differ from `main`: all others were checked in CI, which checks every file.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const gitIn =
  (folder) =>
  (line, ...more) =>
    execFileSync('git', [...line.split(' '), ...more], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();

// A change in one of these files can change the format of every file.
const decideFormat = ['.prettierrc.json', '.prettierignore', '.editorconfig', 'package-lock.json'];

/** Returns the files to check, `['.']` for all of them: outside a git repository, and if it has no branch `main`. */
export const filesToCheck = (folder = '.') => {
  const git = gitIn(folder);
  try {
    // The last one is the branch of the remote repository, if there is one.
    const main = git('for-each-ref --format=%(refname) refs/heads/main refs/remotes/origin/main').split('\n').at(-1);
    const changed = git('diff --name-only -z', git('merge-base HEAD', main));
    const added = git('ls-files --others --exclude-standard -z');
    const paths = `${changed}${added}`.split('\0').filter((path) => path !== '' && existsSync(join(folder, path)));
    return paths.some((path) => decideFormat.includes(path)) ? ['.'] : paths;
  } catch {
    return ['.'];
  }
};

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const files = filesToCheck();
  console.log(files[0] === '.' ? 'Checking all files.' : `Checking ${files.length} changed files.`);
  const { status } =
    files.length === 0
      ? { status: 0 }
      : spawnSync('prettier', ['--check', '--ignore-unknown', ...files], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
}
