// Follows a Dockerfile without Docker: each stage is a folder, and the tests' Node runs its commands.
import { execSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Returns where and how the last stage starts its program. `newFolder` creates a folder for a stage. */
export const buildImage = (dockerfile, context, newFolder) => {
  const stages = {};
  let stage;
  // Vite sets NODE_ENV in this process, and under `production`, npm would leave out what builds the image.
  const env = { ...process.env, NODE_ENV: '' };
  const inStage = (path) => join(stage.root, path.startsWith('/') ? '.' : stage.workdir, path);
  const instructions = {
    FROM: ([, , name = 'last']) => (stage = stages[name] = { root: newFolder(), workdir: '/', env: {} }),
    WORKDIR: ([path]) => mkdirSync(join(stage.root, (stage.workdir = path)), { recursive: true }),
    ENV: ([setting]) => Object.assign(stage.env, Object.fromEntries([setting.split('=')])),
    COPY: (words) => {
      const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length);
      const paths = words.filter((word) => !word.startsWith('--'));
      const to = inStage(paths.pop());
      for (const path of paths) {
        const isRenamed = from !== undefined && !path.endsWith('.json');
        const target = path === '.' || isRenamed ? to : join(to, basename(path));
        cpSync(join(from === undefined ? context : stages[from].root, path), target, { recursive: true });
      }
    },
    RUN: (words) => execSync(words.join(' '), { cwd: inStage('.'), env: { ...env, ...stage.env }, stdio: 'pipe' }),
    CMD: (words) => (stage.command = JSON.parse(words.join(' '))),
    // The tests need no other user and no port.
    USER: () => undefined,
    EXPOSE: () => undefined,
  };
  for (const line of dockerfile.split('\n').filter((line) => /^[A-Z]/.test(line))) {
    const [instruction, ...words] = line.split(' ');
    instructions[instruction](words);
  }
  return { cwd: inStage('.'), env: stage.env, command: stage.command };
};
